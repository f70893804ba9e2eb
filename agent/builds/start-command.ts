/** Runs a template's start command in each sandbox that boots, where the template has no stored memory. */

import { setTimeout as delay } from "node:timers/promises";
import type { StartRequest } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import { within } from "../../shared/program/deadline.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Launched } from "../sandboxes/become-sandbox.ts";
import type { BuildStore } from "../store/builds.ts";
import { START_TAG, startContextOf } from "./finish.ts";
import { loginShell } from "./steps/build-container.ts";
import type { Processes, RunningProgram } from "./steps/processes.ts";

/** A start does not wait longer than this for a sandbox to begin the command. */
const LIMIT_MS = 5_000;
/** Pause between two runs of the ready command; builds use a longer one. */
const READY_EVERY_MS = 100;
/** After this time the sandbox is handed out although it is not ready; the orchestrator allows a start twice that. */
const READY_LIMIT_MS = 10_000;

export interface StartCommandDeps {
  readonly store: Pick<BuildStore, "get">;
  readonly processes: Processes;
  readonly log: Log;
  /** Milliseconds; tests set other limits. */
  readonly readyLimitMs?: number;
}

/**
 * Resolves when the command runs and the ready command, if there is one, succeeds. A failure is logged and does not
 * fail the start of the sandbox.
 */
export type StartCommand = (body: StartRequest, launched: Launched, signal: AbortSignal) => Promise<void>;

export function startCommand({ store, processes, log, readyLimitMs }: StartCommandDeps): StartCommand {
  return async ({ build, sandboxId, envs, accessToken }, { container, restored }, signal) => {
    if (restored === "memory" || restored === "frozen") return;
    const settings = store.get(build.buildId)?.result?.settings;
    if (settings?.startCmd === undefined) return;
    const { startCmd, readyCmd } = settings;
    const context = startContextOf(settings);
    const { user, workdir } = context;
    const at = { address: container.slot.address, accessToken };
    const left = new AbortController();
    const begin = (command: string, until: AbortSignal, tag?: string) => {
      const program = { cmd: "/bin/bash", args: loginShell(command, context).args, user, cwd: workdir };
      const whole = { ...program, envs: { ...context.envs, ...envs }, ...defined({ tag }) };
      const options = { onOutput: () => undefined, signal: AbortSignal.any([signal, until, left.signal]) };
      return processes.start(at, whole, options);
    };
    try {
      const { ended } = await within(LIMIT_MS, (limit) => begin(startCmd, limit, START_TAG));
      if (readyCmd === undefined) return;
      const failed = ended.then(
        ({ exitCode }) => (exitCode === 0 ? new Promise<never>(() => undefined) : undefined),
        () => new Promise<never>(() => undefined),
      );
      await within(readyLimitMs ?? READY_LIMIT_MS, (limit) =>
        Promise.race([untilReady(() => begin(readyCmd, limit), limit), failed]),
      );
    } catch (error) {
      log.warn({ err: error, sandboxId }, "the start command did not run, or is not ready");
    } finally {
      // The command continues; no one follows its output.
      left.abort();
    }
  };
}

async function untilReady(check: () => Promise<RunningProgram>, limit: AbortSignal): Promise<void> {
  for (;;) {
    const { exitCode } = await (await check()).ended;
    if (exitCode === 0) return;
    await delay(READY_EVERY_MS, undefined, { signal: limit });
  }
}
