/**
 * Keeps `svc-sizes` serving: the file system whose files say inside a sandbox what that sandbox has. svc-runc mounts them
 * over those of /proc and /sys in every container that starts, and the machine's own files while nobody serves.
 */

import { createHash, randomInt } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../shared/program/log.ts";
import type { RunCommand } from "../host/command.ts";

/** Longer than the server takes for any answer before it is replaced. */
const READ_LIMIT_MS = 5_000;
/** Mounts that lie on one another at the place, each of an earlier server. */
const MOST_MOUNTS = 8;
/** No user of the machine, of Docker or of a container's image has such a number, and no file belongs to one. */
const FIRST_USER = 1_879_048_192;
const LAST_USER = 2_147_483_646;

/** A container that runs, by its first process on the host. */
interface Running {
  readonly id: string;
  readonly pid: number;
}

export interface Procfs {
  /**
   * Checks that the files are served, and otherwise serves them, also to the containers that run. Never rejects.
   * @returns what sandboxes see, for the node's capabilities
   */
  keep(running: () => readonly Running[]): Promise<string>;
}

export interface ProcfsDeps {
  readonly run: RunCommand;
  /** Where the files are mounted; `svc-runc` finds them there. */
  readonly place: string;
  /** The program, compiled. */
  readonly program: () => Promise<string>;
  readonly log: Log;
}

export const SERVED = "sandboxes see their own";

export function hostProcfs({ run, place, program, log }: ProcfsDeps): Procfs {
  const state = { starts: 0, problem: "" };
  const loaded = { program: undefined as Promise<{ path: string; version: string }> | undefined };
  const compiled = () => {
    loaded.program ??= describe(program).catch((error: unknown) => {
      loaded.program = undefined;
      throw error;
    });
    return loaded.program;
  };

  // Read by a separate process: a read that hangs would keep one of the agent's few threads for ever.
  const answer = async () => {
    const text = await run("cat", [join(place, "alive")], { timeoutMs: READ_LIMIT_MS }).catch(() => "");
    const [version = "", starts = "0"] = text.trim().split(" ");
    return { version, starts: Number(starts) };
  };

  /** The mounts inside containers that run stay, and so does the server that serves these, until the last one ends. */
  const unmount = async () => {
    for (let mounts = 0; mounts < MOST_MOUNTS; mounts++) {
      const mounted = (await readFile("/proc/self/mounts", "utf8"))
        .split("\n")
        .some((line) => line.split(" ")[1] === place);
      if (!mounted) return;
      await run("umount", ["--lazy", place]);
    }
  };

  const serve = async (running: () => readonly Running[]) => {
    const { path, version } = await compiled();
    const found = await answer();
    if (found.version === version) {
      if (found.starts > state.starts && state.starts > 0)
        log.warn({ starts: found.starts }, "svc-sizes ended and was started again; it keeps its mounts");
      state.starts = found.starts;
      return;
    }
    await unmount();
    await mkdir(place, { recursive: true, mode: 0o755 });
    await run(path, ["serve", place, String(randomInt(FIRST_USER, LAST_USER)), version]);
    if ((await answer()).version !== version) throw new Error(`nothing answers at ${place}`);
    state.starts = 1;
    const containers = running().map(({ id, pid }) => `${pid}:${id}`);
    if (containers.length === 0) return;
    // Leaves alone what another server, of an earlier version, still serves.
    await run(path, ["rebind", place, ...containers]).catch((error: unknown) => {
      log.warn({ err: error }, "some sandboxes cannot read their sizes until they are paused and resumed");
    });
  };

  return {
    async keep(running) {
      try {
        await serve(running);
        state.problem = "";
        return SERVED;
      } catch (error) {
        const problem = error instanceof Error ? error.message : String(error);
        if (problem !== state.problem)
          log.warn({ err: error }, "sandboxes that start now see the machine's sizes instead of their own");
        state.problem = problem;
        return `sandboxes see the machine's: ${problem}`;
      }
    },
  };
}

async function describe(program: () => Promise<string>): Promise<{ path: string; version: string }> {
  const path = await program();
  const version = createHash("sha256")
    .update(await readFile(path))
    .digest("hex")
    .slice(0, 12);
  return { path, version };
}
