/** What the platform says about one file: looked up without following it, metadata included. */

import type { BigIntStats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { posix } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AppError } from "../../shared/errors.ts";
import { errnoOf, fileError } from "../errno.ts";
import { type EntryInfoSchema, FileType } from "../gen/filesystem_pb.js";
import type { Attributes, System } from "../system/system.ts";
import type { Users } from "../users.ts";
import { permissionBits, permissionString } from "./permissions.ts";

export type Entry = MessageInitShape<typeof EntryInfoSchema>;

const NANOSECONDS = 1_000_000_000n;

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

  /** In order; those that are not there, or no longer, are left out. */
  async getAll(paths: readonly string[]): Promise<Entry[]> {
    const found: { path: string; stats: BigIntStats; link: Link | undefined }[] = [];
    // Node has four threads for file calls: more at a time would only wait.
    for (let from = 0; from < paths.length; from += 64) {
      const some = await Promise.all(paths.slice(from, from + 64).map(look));
      for (const look of some) if (look !== undefined) found.push(look);
    }
    const attributes = await this.#system.getAttributes(found.map(({ path, link }) => link?.target ?? path));
    return found.map(({ path, stats, link }, index) =>
      this.#describe(path, { stats, link, attributes: attributes[index] ?? {} }),
    );
  }

  #describe(
    path: string,
    { stats, link, attributes }: { stats: BigIntStats; link: Link | undefined; attributes: Attributes },
  ): Entry {
    const mode = Number(stats.mode);
    const seconds = floorDivide(stats.mtimeNs, NANOSECONDS);
    const entry: Entry = {
      name: posix.basename(path),
      type: link === undefined ? fileType(mode) : (link.type ?? FileType.SYMLINK),
      path,
      size: stats.size,
      mode: permissionBits(link?.mode ?? mode),
      permissions: permissionString(mode),
      owner: this.#users.userName(Number(stats.uid)),
      group: this.#users.groupName(Number(stats.gid)),
      modifiedTime: { seconds, nanos: Number(stats.mtimeNs - seconds * NANOSECONDS) },
      metadata: { ...attributes },
    };
    return link === undefined ? entry : { ...entry, symlinkTarget: link.target };
  }
}

/** Of a symbolic link: where it leads, and what is there. */
interface Link {
  readonly target: string;
  readonly type: FileType | undefined;
  readonly mode: number | undefined;
}

async function look(path: string): Promise<{ path: string; stats: BigIntStats; link: Link | undefined } | undefined> {
  try {
    const stats = await lstat(path, { bigint: true });
    return { path, stats, link: stats.isSymbolicLink() ? await follow(path) : undefined };
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT" || errno === "ENOTDIR") return undefined;
    throw fileError(error, path);
  }
}

// A link that leads nowhere is its own target, and stays a link.
async function follow(path: string): Promise<Link> {
  try {
    const target = await realpath(path);
    const mode = Number((await stat(target, { bigint: true })).mode);
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
