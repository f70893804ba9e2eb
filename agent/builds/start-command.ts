/** The start command of a template whose memory could not be kept, or was not asked for: run in each sandbox that boots. */

import type { StartBody } from "../../shared/agent-api.ts";
import type { Log } from "../../shared/log.ts";
import type { Launched } from "../launch.ts";
import type { BuildStore } from "../store/builds.ts";
import { START_TAG, startContextOf } from "./finish.ts";
import type { Processes } from "./processes.ts";
import { loginShell } from "./workshop.ts";

/** A start must not wait for a sandbox that is slow to begin a command. */
const LIMIT_MS = 5_000;

export interface StartCommandDeps {
  readonly store: Pick<BuildStore, "get">;
  readonly processes: Processes;
  readonly log: Log;
}

/** Resolves when it runs. A failure is the sandbox's own affair: it is logged, and the sandbox is there. */
export type StartCommand = (body: StartBody, launched: Launched, signal: AbortSignal) => Promise<void>;

export function startCommand({ store, processes, log }: StartCommandDeps): StartCommand {
  return async ({ build, sandboxId, envs, accessToken }, { container, restored }, signal) => {
    if (restored === "memory" || restored === "hot") return;
    const settings = store.get(build.buildId)?.result?.settings;
    if (settings?.startCmd === undefined) return;
    const { user, workdir, envs: own } = startContextOf(settings);
    const { args } = loginShell(settings.startCmd, startContextOf(settings));
    const program = { cmd: "/bin/bash", args, user, cwd: workdir, envs: { ...own, ...envs }, tag: START_TAG };
    const left = new AbortController();
    const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS), left.signal]);
    try {
      const at = { address: container.slot.address, accessToken };
      await processes.start(at, program, { onOutput: () => undefined, signal: limit });
    } catch (error) {
      log.warn({ err: error, sandboxId }, "start command not run");
    } finally {
      // It runs on; nobody has to follow it.
      left.abort();
    }
  };
}
