/** Commands that tests give to an envd: shell scripts, which a test finds again by process id or tag. */

import { expect } from "vitest";
import { as, type Clients } from "../running-envd.ts";
import { type Followed, toEnd } from "./following.ts";

export const sh = (script: string) => ({ cmd: "/bin/sh", args: ["-c", script], envs: {} });
export const byPid = (pid: number) => ({ selector: { case: "pid" as const, value: pid } });
export const byTag = (tag: string) => ({ selector: { case: "tag" as const, value: tag } });

interface RunOptions {
  readonly user?: string;
  readonly stdin?: boolean;
  readonly headers?: Record<string, string>;
}

export type Run = (script: string, options?: RunOptions) => Promise<Followed>;

/** Runs a script to its end. */
export function runOn(clients: () => Clients): Run {
  return (script, { user = "user", stdin = false, headers } = {}) =>
    toEnd(clients().process.start({ process: sh(script), stdin }, as(user, headers)));
}

/** Expects that no process, pipe or follower is left. */
export async function expectNoneLeft({ process }: Clients): Promise<void> {
  await expect.poll(async () => (await process.list({})).processes).toEqual([]);
}
