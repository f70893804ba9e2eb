/** Describes files for clients: looked up without following a link, metadata included. */

import type { BigIntStats } from "node:fs";
import { posix } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type EntryInfoSchema, FileType } from "../../shared/envd-rpc/gen/filesystem_pb.js";
import { AppError } from "../../shared/http/errors.ts";
import { lstatBig, lstatBigNow, realpath, stat } from "../system/disk.ts";
import { errnoOf, fileError } from "../system/errno.ts";
import type { Attributes, System } from "../system/system.ts";
import type { Users } from "../system/users.ts";
import { permissionBits, permissionString } from "./permissions.ts";

export type Entry = MessageInitShape<typeof EntryInfoSchema>;

const NANOSECONDS = 1_000_000_000n;
/** Entries per turn of the event loop: well under a millisecond. */
const SLICE = 64;

export class Entries {
  readonly #system: Pick<System, "getAttributes">;
  readonly #users: Pick<Users, "userName" | "groupName">;

  constructor(system: Pick<System, "getAttributes">, users: Pick<Users, "userName" | "groupName">) {
    this.#system = system;
    this.#users = users;
  }

  /** @throws {AppError} not_found "path not found" */
  async get(path: string): Promise<Entry> {
    const [entry] = await this.getAll([path]);
    if (entry === undefined) throw new AppError("not_found", `path not found: '${path}'`);
    return entry;
  }

  /** In order; files that do not exist are left out. */
  async getAll(paths: readonly string[]): Promise<Entry[]> {
    const found: FoundEntry[] = [];
    for (let from = 0; from < paths.length; from += SLICE) {
      const slice = paths.slice(from, from + SLICE);
      // The first look-up uses a thread, which may wait for a disk; its neighbours are then in the kernel's cache.
      const [first = ""] = slice;
      const stats = [await statOf(first), ...slice.slice(1).map(statNow)];
      for (const [index, path] of slice.entries()) {
        const entry = stats[index];
        if (entry !== undefined)
          found.push({ path, stats: entry, link: entry.isSymbolicLink() ? await follow(path) : undefined });
      }
    }
    const attributes = await this.#system.getAttributes(found.map(({ path, link }) => link?.target ?? path));
    const names = this.#names();
    return found.map((entry, index) => describe(entry, attributes[index] ?? {}, names));
  }

  /** Resolves each user and group number once. */
  #names(): Names {
    const memo = (find: (id: number) => string) => {
      const known = new Map<number, string>();
      return (id: number) => {
        const name = known.get(id) ?? find(id);
        known.set(id, name);
        return name;
      };
    };
    return { user: memo((uid) => this.#users.userName(uid)), group: memo((gid) => this.#users.groupName(gid)) };
  }
}

interface Names {
  readonly user: (uid: number) => string;
  readonly group: (gid: number) => string;
}

interface FoundEntry {
  readonly path: string;
  readonly stats: BigIntStats;
  readonly link: Link | undefined;
}

function describe({ path, stats, link }: FoundEntry, attributes: Attributes, names: Names): Entry {
  const mode = Number(stats.mode);
  const seconds = floorDivide(stats.mtimeNs, NANOSECONDS);
  const entry: Entry = {
    // The root has no name of its own; clients of the public protocol get "/".
    name: path === "/" ? path : posix.basename(path),
    type: link === undefined ? fileType(mode) : (link.type ?? FileType.SYMLINK),
    path,
    size: stats.size,
    mode: permissionBits(link?.mode ?? mode),
    permissions: permissionString(mode),
    owner: names.user(Number(stats.uid)),
    group: names.group(Number(stats.gid)),
    modifiedTime: { seconds, nanos: Number(stats.mtimeNs - seconds * NANOSECONDS) },
    metadata: { ...attributes },
  };
  return link === undefined ? entry : { ...entry, symlinkTarget: link.target };
}

/** Target of a symbolic link, and the type and mode of what is there. */
interface Link {
  readonly target: string;
  readonly type: FileType | undefined;
  readonly mode: number | undefined;
}

async function statOf(path: string): Promise<BigIntStats | undefined> {
  return lstatBig(path).catch((error: unknown) => vanished(error, path));
}

function statNow(path: string): BigIntStats | undefined {
  try {
    return lstatBigNow(path);
  } catch (error) {
    return vanished(error, path);
  }
}

function vanished(error: unknown, path: string): undefined {
  const errno = errnoOf(error);
  if (errno !== "ENOENT" && errno !== "ENOTDIR") throw fileError(error, path);
}

// A dangling link is its own target, and stays a link.
async function follow(path: string): Promise<Link> {
  try {
    const target = await realpath(path);
    const { mode } = await stat(target);
    return { target, type: fileType(mode), mode };
  } catch {
    return { target: path, type: undefined, mode: undefined };
  }
}

function fileType(mode: number): FileType {
  switch (mode & 0o170000) {
    case 0o100000:
      return FileType.FILE;
    case 0o040000:
      return FileType.DIRECTORY;
    case 0o120000:
      return FileType.SYMLINK;
    default:
      return FileType.UNSPECIFIED;
  }
}

/** Times before 1970 are negative; nanos never are. */
function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}
