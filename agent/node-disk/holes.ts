/** Finds files that are mostly hole: Docker copies holes as zeros, so a copy could take gigabytes from nothing. */

import { spawn } from "node:child_process";
import { AppError } from "../../shared/http/errors.ts";

const MIB = 1024 ** 2;
/** Limit for the holes of one file. */
const MOST_IN_A_FILE = 256 * MIB;
/** Limit for the holes of all files together: many small holes cost as much as one large hole. */
const MOST_IN_ALL = 1024 * MIB;
/** Smaller differences do not count as holes: the unused end of a file's last block, or content kept in an inode. */
const SMALLEST = 64 * 1024;
const BLOCK = 512;
const LIMIT_MS = 30_000;
const SHOWN = 200;
const NUL = "\0";

/** A file whose holes exceed a limit. */
export interface Hole {
  /** Path inside the sandbox: of the file, or of the largest one where many exceed the limit together. */
  readonly path: string;
  /** Bytes of the file's listed size, and bytes on the disk. */
  readonly size: number;
  readonly onDisk: number;
  /** Bytes of holes in all files up to this one. */
  readonly inAll: number;
}

/** The first file of a writable layer that must not be copied; undefined when all may be. */
export type FindHole = (directory: string) => Promise<Hole | undefined>;

/** Adds up holes, one file at a time. Pure. */
export function createHoleSum() {
  const state = { inAll: 0, largest: undefined as Omit<Hole, "inAll"> | undefined, linked: new Set<string>() };
  return {
    /**
     * Adds one regular file. A file with many names (`links` of one `inode`) counts once, because it is copied once.
     * Returns the file that exceeds a limit, or the largest one when many do so together.
     */
    add(file: { size: number; blocks: number; inode: string; links: number; path: string }): Hole | undefined {
      const { size, blocks, inode, links, path } = file;
      const onDisk = blocks * BLOCK;
      const hole = size - onDisk;
      if (hole < SMALLEST || (links > 1 && state.linked.has(inode))) return undefined;
      if (links > 1) state.linked.add(inode);
      state.inAll += hole;
      const { largest } = state;
      if (largest === undefined || hole > largest.size - largest.onDisk) state.largest = { path, size, onDisk };
      if ((hole <= MOST_IN_A_FILE && state.inAll <= MOST_IN_ALL) || state.largest === undefined) return undefined;
      return { ...state.largest, inAll: state.inAll };
    },
  };
}

/**
 * Walks a writable layer within its own file system, and follows no link: the sandbox made its contents. The caller has
 * frozen the sandbox, so the files that are checked are the files that will be copied.
 * @throws {AppError} failed_precondition when the walk takes longer than half a minute
 */
export const findHole: FindHole = (directory) =>
  new Promise((resolve, reject) => {
    const format = "%s %b %i %n /%P\\0";
    const args = ["-P", directory, "-xdev", "-type", "f", "-size", `+${SMALLEST / 1024 - 1}k`, "-printf", format];
    const child = spawn("find", args, {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
    });
    child.once("error", (cause) => reject(new Error("cannot run find", { cause })));
    // No process: `error` follows. Where descriptors were missing, there is no output either.
    if (child.pid === undefined) return;
    const sum = createHoleSum();
    let rest = "";
    let found: Hole | undefined;
    child.stdout.setEncoding("utf8");
    child.stdout.on("data", (chunk: string) => {
      if (found !== undefined) return;
      const lines = `${rest}${chunk}`.split(NUL);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        found ??= sum.add(parse(line));
      }
      if (found !== undefined) child.kill("SIGKILL");
    });
    child.once("close", (_code, signal) => {
      if (found !== undefined || signal === null) resolve(found);
      else reject(new AppError("failed_precondition", "the sandbox has too many files to be copied"));
    });
  });

function parse(line: string) {
  const [, size, blocks, inode = "", links, path = ""] = /^(\d+) (\d+) (\d+) (\d+) (.*)$/s.exec(line) ?? [];
  return { size: Number(size ?? 0), blocks: Number(blocks ?? 0), inode, links: Number(links ?? 1), path };
}

/** @throws {AppError} failed_precondition that names the file and what to do about it */
export async function refuseHoles(directory: string | undefined, find: FindHole): Promise<void> {
  const hole = directory === undefined ? undefined : await find(directory);
  if (hole !== undefined) throw new AppError("failed_precondition", describeHole(hole));
}

function describeHole({ path, size, onDisk, inAll }: Hole): string {
  const name = JSON.stringify(path).slice(1, -1).slice(0, SHOWN);
  const many = size - onDisk > MOST_IN_A_FILE ? "" : `, the largest of many sparse files that hide ${mib(inAll)},`;
  return (
    `the file ${name}${many} is sparse: it is ${mib(size)} long and takes ${mib(onDisk)} of the disk, ` +
    "and a copy would take all of it; delete it or shorten it (truncate -s), or fill it (cp --sparse=never), then try again"
  );
}

function mib(bytes: number): string {
  return `${Math.ceil(bytes / MIB)} MiB`;
}
