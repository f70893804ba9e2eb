/**
 * Rules for an archive of a COPY step. The archive comes from a client and is not trusted: an entry that could end up
 * outside the target directory, or is not a plain part of a file tree, is refused with a reason. Pure.
 */

import { AppError } from "../../../shared/http/errors.ts";

/** An entry of the archive. */
export interface GivenEntry {
  readonly name: string;
  /** Type as tar-stream names it. */
  readonly type: string;
  readonly size: number;
  readonly mode: number;
  readonly linkname: string | undefined;
  readonly mtime: Date | undefined;
}

/** An entry as it is passed on: a clean relative path, owned by root. */
interface CleanEntry {
  readonly name: string;
  readonly type: "file" | "directory" | "symlink" | "link";
  readonly size: number;
  readonly mode: number;
  readonly linkname?: string;
  readonly mtime: Date;
}

export interface ArchiveLimits {
  readonly entries: number;
  /** Most bytes of all files together. */
  readonly bytes: number;
  /** Largest ratio of unpacked to packed size, checked once the unpacked size is more than `ratioFrom`. */
  readonly ratio: number;
  readonly ratioFrom: number;
}

export const ARCHIVE_LIMITS: ArchiveLimits = {
  entries: 80_000,
  bytes: 20 * 1024 ** 3,
  ratio: 200,
  ratioFrom: 64 * 1024 ** 2,
};

const LONGEST_PATH = 4_096;
const LONGEST_NAME = 255;

export interface ArchiveCheck {
  /** Undefined for an entry that is left out: the directory itself. @throws {AppError} bad_request */
  entry(given: GivenEntry): CleanEntry | undefined;
  /** Checks bytes before and after unpacking so far. @throws {AppError} bad_request */
  progress(packed: number, unpacked: number): void;
}

export interface ArchiveOptions {
  readonly limits: ArchiveLimits;
  /** A set-user-ID bit is kept only when the file belongs to root. */
  readonly keepSetuid: boolean;
}

export function createArchiveCheck({ limits, keepSetuid }: ArchiveOptions): ArchiveCheck {
  const kinds = new Map<string, CleanEntry["type"]>();
  const state = { entries: 0, bytes: 0 };

  // An entry below a link would be written to where the link points.
  const checkParents = (name: string) => {
    const parts = name.split("/");
    for (let count = 1; count < parts.length; count++) {
      const parent = parts.slice(0, count).join("/");
      const kind = kinds.get(parent);
      if (kind === "symlink") throw refused(name, `its directory '${parent}' is a symbolic link in the archive`);
      if (kind === "file" || kind === "link") throw refused(name, `its directory '${parent}' is a file in the archive`);
    }
  };

  return {
    entry(given) {
      if (++state.entries > limits.entries)
        throw new AppError("bad_request", `the archive has more than ${limits.entries} entries`);
      const type = kindOf(given);
      const name = cleanPath(given.name, "entry");
      if (name === "") {
        if (type === "directory") return undefined;
        throw refused(given.name, "it has no name");
      }
      checkParents(name);
      const before = kinds.get(name);
      if (before !== undefined && (before !== type || type === "symlink"))
        throw refused(name, "it is in the archive twice, as different things");
      state.bytes += given.size;
      if (!Number.isSafeInteger(given.size) || given.size < 0 || state.bytes > limits.bytes)
        throw new AppError("bad_request", `the archive has more than ${limits.bytes} bytes of files`);
      if (type !== "file" && given.size > 0) throw refused(name, `a ${type} has no content`);
      kinds.set(name, type);
      return {
        name,
        type,
        size: given.size,
        mode: given.mode & (keepSetuid ? 0o7777 : 0o1777),
        mtime: given.mtime ?? new Date(0),
        ...linkOf(given, type),
      };
    },

    progress(packed, unpacked) {
      if (unpacked <= limits.ratioFrom || unpacked <= packed * limits.ratio) return;
      throw new AppError("bad_request", `the archive unpacks to more than ${limits.ratio} times its size`);
    },
  };

  function linkOf({ name, linkname }: GivenEntry, type: CleanEntry["type"]): { linkname?: string } {
    if (type === "symlink") {
      // A link may point anywhere: only programs inside the sandbox follow it, and its owner could create it there too.
      if (linkname === undefined || linkname === "" || linkname.length > LONGEST_PATH || linkname.includes("\0"))
        throw refused(name, "it is a symbolic link to nothing");
      return { linkname };
    }
    if (type !== "link") return {};
    const target = cleanPath(linkname ?? "", "target of a hard link");
    const kind = kinds.get(target);
    if (kind !== "file" && kind !== "link")
      throw refused(name, `it is a hard link to '${target}', which is not an earlier file of the archive`);
    checkParents(target);
    return { linkname: target };
  }
}

function kindOf({ name, type }: GivenEntry): CleanEntry["type"] {
  switch (type) {
    case "file":
    case "contiguous-file":
      return "file";
    case "directory":
    case "symlink":
    case "link":
      return type;
    case "character-device":
    case "block-device":
      throw refused(name, "it is a device");
    case "fifo":
      throw refused(name, "it is a named pipe");
    default:
      throw refused(name, `entries of the kind '${type}' are not known`);
  }
}

/** Normalises a path; empty for the directory itself. */
function cleanPath(path: string, what: string): string {
  const wrong = (why: string) => new AppError("bad_request", `the archive has an ${what} '${shown(path)}' ${why}`);
  if (path.length > LONGEST_PATH) throw wrong("that is too long");
  if (path.includes("\0")) throw wrong("with a zero byte");
  if (path.startsWith("/")) throw wrong("with an absolute path");
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw wrong("that leads out of its directory ('..')");
  if (parts.some((part) => Buffer.byteLength(part) > LONGEST_NAME)) throw wrong("with a name that is too long");
  return parts.join("/");
}

function refused(name: string, why: string): AppError {
  return new AppError("bad_request", `the archive is refused because of '${shown(name)}': ${why}`);
}

function shown(name: string): string {
  return name.slice(0, 200).replaceAll(/[^\x20-\x7e\u{a0}-\u{10ffff}]/gu, "?");
}
