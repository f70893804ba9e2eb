/**
 * Docker's own files that are mounted into every sandbox and that root inside may write. They are outside of the
 * sandbox's disk limit, so they are cut when they grow beyond any real use.
 */

import { constants } from "node:fs";
import { lstat, open } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";

const NAMES = ["hosts", "resolv.conf", "hostname"] as const;
const MOST_BYTES = 1024 ** 2;
const BLOCK = 512;
const EVERY_MS = 1_000;
/** Containers checked in one round: five rounds check a thousand. */
const PER_ROUND = 200;

export interface OwnFilesDeps {
  readonly dataRoot: () => Promise<string>;
  /** Ids of containers that run. */
  readonly containers: () => readonly string[];
  readonly log: Log;
}

export function watchOwnFiles({ dataRoot, containers, log }: OwnFilesDeps): Loop {
  let from = 0;
  return loop({ name: "Docker's files", everyMs: EVERY_MS, log }, async () => {
    const ids = containers();
    const root = await dataRoot();
    const start = from < ids.length ? from : 0;
    from = start + PER_ROUND;
    for (const id of ids.slice(start, from)) {
      for (const name of NAMES) {
        const outcome = await cutFile(join(root, "containers", id, name));
        if (outcome !== "small")
          log.warn(
            { containerId: id, file: `/etc/${name}`, outcome },
            "a file that Docker mounts into a sandbox is larger than 1 MiB",
          );
      }
    }
  });
}

/**
 * Cuts a file to its first 1 MiB. Never blocks: a program inside may hold a lease on the file, or have put a pipe in its
 * place; then it returns `busy`. A missing or unreadable file counts as small, because its sandbox has ended.
 */
export async function cutFile(path: string): Promise<"small" | "cut" | "busy"> {
  try {
    const { size, blocks } = await lstat(path);
    if (size <= MOST_BYTES && blocks * BLOCK <= MOST_BYTES * 2) return "small";
    const file = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) return "busy";
      await file.truncate(MOST_BYTES);
      return "cut";
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    return code === "ENOENT" || code === "ENOTDIR" ? "small" : "busy";
  }
}
