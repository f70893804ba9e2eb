/** The end of a build: runs the start command until the template is ready. */

import { setTimeout as delay } from "node:timers/promises";
import type { BuildBody, BuildSettings } from "../../shared/agent-api/build-shapes.ts";
import { defined } from "../../shared/defined.ts";
import { AppError } from "../../shared/http/errors.ts";
import { withDeadline, within } from "../../shared/program/deadline.ts";
import { type BuildContainer, loginShell } from "./steps/build-container.ts";
import type { BuildLog } from "./steps/build-log.ts";
import type { StepContext } from "./steps/context.ts";
import type { ExitStatus } from "./steps/processes.ts";
import { RpcError } from "./steps/processes.ts";
import { tried } from "./steps/steps.ts";

export const FINAL_STEP = "finalize";
/** First and longest pause between two runs of the ready command. */
const READY_EVERY_MS = 2_000;
const READY_LIMIT_MS = 600_000;
/** Wait after a start command without a ready command. */
const DEFAULT_WAIT_S = 20;

/** Tag of the start command in lists of processes. */
export const START_TAG = "start_cmd";

/** The commands that run in sandboxes: this build's, or those of the build below. Pure. */
export function startOf(
  { startCmd, readyCmd }: Pick<BuildBody, "startCmd" | "readyCmd">,
  below: BuildSettings | undefined,
): Pick<BuildSettings, "startCmd" | "readyCmd" | "startContext"> {
  const some = (command: string | undefined) => (command === undefined || command.trim() === "" ? undefined : command);
  const own = some(startCmd);
  const ownReady = some(readyCmd);
  if (own !== undefined) return { startCmd: own, ...defined({ readyCmd: ownReady }) };
  const inherited = below?.startCmd;
  const ready = ownReady ?? below?.readyCmd;
  return {
    ...defined({ readyCmd: ready }),
    ...(inherited === undefined || below === undefined
      ? {}
      : { startCmd: inherited, startContext: below.startContext ?? contextIn(below) }),
  };
}

function contextIn({ envs, user, workdir }: StepContext): StepContext {
  return { envs, user, workdir };
}

/** Where commands with these settings run. */
export function startContextOf(settings: BuildSettings): StepContext {
  return settings.startContext ?? contextIn(settings);
}

export interface FinishDeps {
  readonly log: BuildLog;
  readonly now: () => number;
  /** Milliseconds; tests set other values. */
  readonly readyEveryMs?: number;
  readonly readyLimitMs?: number;
  readonly defaultWaitS?: number;
}

/** Resolves when the template is ready, and its start command runs or has ended well. */
export async function startAndWait(
  settings: BuildSettings,
  buildContainer: BuildContainer,
  deps: FinishDeps,
  signal: AbortSignal,
): Promise<void> {
  const { log } = deps;
  const { startCmd, readyCmd } = settings;
  const say = (message: string) => log.write("info", `[${FINAL_STEP}] ${message}`, FINAL_STEP);
  const context = startContextOf(settings);
  let started: Promise<ExitStatus> | undefined;
  if (startCmd !== undefined) {
    say("Running start command");
    const output = log.output("[start]", FINAL_STEP);
    const begun = { ...loginShell(startCmd, context), tag: START_TAG };
    const running = await tried(startCmd, () => buildContainer.start(begun, output.push, signal));
    started = running.ended.finally(output.end);
    started.catch(() => undefined);
  }
  say("Waiting for template to be ready");
  const until = new AbortController();
  const failed = failure(started);
  try {
    const isReady =
      readyCmd === undefined
        ? settled(started, deps, until.signal)
        : ready(readyCmd, context, { buildContainer, deps, signal: until.signal });
    await withDeadline(Promise.race([isReady, failed]), signal, () => signal.throwIfAborted());
  } finally {
    until.abort();
  }
  say("Template is ready");
}

/** Never resolves; rejects when the start command ends with a failure. */
async function failure(started: Promise<ExitStatus> | undefined): Promise<never> {
  const ended = await (started ?? new Promise<never>(() => undefined)).catch((cause: unknown) => {
    if (cause instanceof RpcError)
      throw new AppError("bad_request", `start command failed: ${cause.code}: ${cause.message}`, { cause });
    throw cause;
  });
  if (ended.exitCode !== 0) throw new AppError("bad_request", `start command failed: ${ended.status}`);
  // A start command that ended well counts as ready, unless a ready command decides.
  return new Promise(() => undefined);
}

async function settled(
  started: Promise<ExitStatus> | undefined,
  { defaultWaitS = DEFAULT_WAIT_S }: FinishDeps,
  signal: AbortSignal,
): Promise<void> {
  if (started === undefined) return;
  const waited = delay(defaultWaitS * 1_000, undefined, { signal });
  waited.catch(() => undefined);
  const over = started.then(({ exitCode }) => (exitCode === 0 ? undefined : new Promise<never>(() => undefined)));
  await Promise.race([waited, over]);
}

async function ready(
  command: string,
  context: StepContext,
  { buildContainer, deps, signal }: { buildContainer: BuildContainer; deps: FinishDeps; signal: AbortSignal },
): Promise<void> {
  const { log, now, readyEveryMs = READY_EVERY_MS, readyLimitMs = READY_LIMIT_MS } = deps;
  const begun = now();
  await within(readyLimitMs, async (limit) => {
    const either = AbortSignal.any([signal, limit]);
    try {
      for (;;) {
        const output = log.output("[ready]", FINAL_STEP);
        const { exitCode } = await tried(command, () =>
          buildContainer.run(loginShell(command, context), output.push, either),
        ).finally(output.end);
        if (exitCode === 0) return;
        await delay(readyEveryMs, undefined, { signal: either });
      }
    } catch (error) {
      if (signal.aborted || !limit.aborted) throw error;
      const seconds = Math.round((now() - begun) / 1_000);
      throw new AppError("bad_request", `ready command timed out after ${seconds} s`, { cause: error });
    }
  });
}
