/** The start command of a template whose memory could not be kept, or was not asked for: run in each sandbox that boots. */

import { setTimeout as delay } from "node:timers/promises";
import type { StartBody } from "../../shared/agent-api/routes.ts";
import { anySignal } from "../../shared/program/any-signal.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Launched } from "../sandboxes/launch.ts";
import type { BuildStore } from "../store/builds.ts";
import { START_TAG, startContextOf } from "./finish.ts";
import { loginShell } from "./steps/build-container.ts";
import type { Processes, Running } from "./steps/processes.ts";

/** A start must not wait for a sandbox that is slow to begin a command. */
const LIMIT_MS = 5_000;
/** Between two runs of the ready command; a build has more time. */
const READY_EVERY_MS = 100;
/** A sandbox that is not ready by then is handed out as it is: the orchestrator gives a start twice as long. */
const READY_LIMIT_MS = 10_000;

export interface StartCommandDeps {
  readonly store: Pick<BuildStore, "get">;
  readonly processes: Processes;
  readonly log: Log;
  /** Milliseconds, another limit in tests. */
  readonly readyLimitMs?: number;
}

/**
 * Resolves when it runs and the ready command, if there is one, says so. A failure is the sandbox's own affair: it is
 * logged, and the sandbox is there.
 */
export type StartCommand = (body: StartBody, launched: Launched, signal: AbortSignal) => Promise<void>;

export function startCommand({ store, processes, log, readyLimitMs }: StartCommandDeps): StartCommand {
  return async ({ build, sandboxId, envs, accessToken }, { container, restored }, signal) => {
    if (restored === "memory" || restored === "hot") return;
    const settings = store.get(build.buildId)?.result?.settings;
    if (settings?.startCmd === undefined) return;
    const { startCmd, readyCmd } = settings;
    const context = startContextOf(settings);
    const { user, workdir } = context;
    const at = { address: container.slot.address, accessToken };
    const left = new AbortController();
    const begin = (command: string, until: AbortSignal, tag?: string) => {
      const program = { cmd: "/bin/bash", args: loginShell(command, context).args, user, cwd: workdir };
      const whole = { ...program, envs: { ...context.envs, ...envs }, ...(tag === undefined ? {} : { tag }) };
      const options = { onOutput: () => undefined, signal: anySignal(signal, until, left.signal) };
      return processes.start(at, whole, options);
    };
    try {
      const { ended } = await begin(startCmd, AbortSignal.timeout(LIMIT_MS), START_TAG);
      if (readyCmd === undefined) return;
      const limit = AbortSignal.timeout(readyLimitMs ?? READY_LIMIT_MS);
      const failed = ended.then(
        ({ exitCode }) => (exitCode === 0 ? new Promise<never>(() => undefined) : undefined),
        () => new Promise<never>(() => undefined),
      );
      await Promise.race([untilReady(() => begin(readyCmd, limit), limit), failed]);
    } catch (error) {
      log.warn({ err: error, sandboxId }, "start command not run, or not ready");
    } finally {
      // It runs on; nobody has to follow it.
      left.abort();
    }
  };
}

async function untilReady(check: () => Promise<Running>, limit: AbortSignal): Promise<void> {
  for (;;) {
    const { exitCode } = await (await check()).ended;
    if (exitCode === 0) return;
    await delay(READY_EVERY_MS, undefined, { signal: limit });
  }
}
