/** Builds by id: starts each once, a limited number at a time; follows, cancels and removes; ends abandoned ones. */

import type { BuildBody, BuildState } from "../../shared/agent-api/build-shapes.ts";
import { defined } from "../../shared/defined.ts";
import { AppError } from "../../shared/http/errors.ts";
import { within } from "../../shared/program/deadline.ts";
import type { Log } from "../../shared/program/log.ts";
import type { Semaphore } from "../../shared/program/semaphore.ts";
import type { BuildResult, BuildStore } from "../store/builds.ts";
import { whenRoom } from "../store/database/when-room.ts";
import type { BuildRequest, Progress } from "./build.ts";
import { type BuildLog, createBuildLog } from "./steps/build-log.ts";

export interface BuildsDeps {
  readonly store: BuildStore;
  readonly build: (
    request: BuildRequest,
    tools: { readonly log: BuildLog; readonly progress: Progress },
    signal: AbortSignal,
  ) => Promise<BuildResult>;
  /** Image and snapshot of a build, as far as they exist. */
  readonly discard: (buildId: string, snapshotId: string | undefined) => Promise<void>;
  readonly semaphore: Semaphore;
  /** Why no build can begin on the node's disk; undefined while there is room. */
  readonly refusal: () => AppError | undefined;
  readonly now: () => number;
  readonly log: Log;
}

export interface Builds {
  /** Starts the build in the background. A repeated call has no effect. */
  start(buildId: string, body: BuildBody): void;
  /** @throws {AppError} not_found */
  state(buildId: string, offset: number, limit: number): BuildState;
  /** Fails a build under way with this reason; ignored for other builds. */
  fail(buildId: string, reason: AppError): void;
  /** Resolves when nothing of the build is left. An unknown id is remembered, so that a late start fails. */
  delete(buildId: string): Promise<void>;
  /** Refuses new builds and fails those under way with that reason. */
  drain(): Promise<void>;
}

const INTERRUPTED = "the build was interrupted: its node was restarted";

export function createBuilds(deps: BuildsDeps): Builds {
  const { store, build, discard, semaphore, now, log } = deps;
  const under = new Map<string, { readonly cancel: AbortController; readonly done: Promise<void> }>();
  const state = { draining: false };

  const run = async ({ buildId, body }: BuildRequest, cancelled: AbortSignal) => {
    const lines = createBuildLog(buildId, store, now);
    const progress = { at: "base" };
    const inTime = (limit: AbortSignal) => {
      const seconds = Math.round(body.limitMs / 1_000);
      const outOfTime = new AbortController();
      limit.addEventListener("abort", () =>
        outOfTime.abort(new AppError("bad_request", `the build took longer than its limit of ${seconds} s`)),
      );
      return AbortSignal.any([cancelled, outOfTime.signal]);
    };
    const work = async (signal: AbortSignal) => {
      const giveBack = await semaphore.take(signal);
      try {
        const result = await build({ buildId, body }, { log: lines, progress }, signal);
        lines.flush();
        store.succeed(buildId, result, now());
        log.info({ buildId, memory: result.snapshot?.memory ?? false }, "template built");
      } finally {
        giveBack();
      }
    };
    try {
      await within(body.limitMs, (limit) => work(inTime(limit)));
    } catch (error) {
      const { message, code, details } = AppError.from(error);
      if (code === "internal") log.error({ err: error, buildId }, "build failed by an internal error");
      else log.info({ buildId, step: progress.at, reason: message, ...details }, "build failed");
      lines.write("error", message, progress.at);
      const end = () => {
        lines.flush();
        store.fail(buildId, { message, step: progress.at }, now());
      };
      // A build whose end is not recorded is one that the next agent process finds unfinished.
      await whenRoom(end, { giveUp: () => state.draining });
    }
  };

  return {
    start(buildId, body) {
      const known = store.get(buildId);
      if (known?.state === "deleted") throw new AppError("conflict", `build ${buildId} was deleted`);
      if (known !== undefined) return;
      if (state.draining) throw new AppError("unavailable", "the node is shutting down");
      const refusal = deps.refusal();
      if (refusal !== undefined) throw refusal;
      store.begin(buildId, body.templateId, now(), body.projectId);
      const cancel = new AbortController();
      const done = run({ buildId, body }, cancel.signal)
        .catch((error: unknown) => log.error({ err: error, buildId }, "could not record a build"))
        .finally(() => under.delete(buildId));
      under.set(buildId, { cancel, done });
    },

    fail: (buildId, reason) => under.get(buildId)?.cancel.abort(reason),

    state(buildId, offset, limit) {
      const found = store.get(buildId);
      if (found === undefined || found.state === "deleted")
        throw new AppError("not_found", `this node has no build ${buildId}`);
      const { state: status, reason, result } = found;
      return {
        buildId,
        status,
        entries: store.entries(buildId, offset, limit),
        ...defined({ reason, result }),
      };
    },

    async delete(buildId) {
      const running = under.get(buildId);
      running?.cancel.abort(new AppError("conflict", "the build was cancelled"));
      await running?.done;
      const found = store.get(buildId);
      if (found?.state === "ready" || found?.state === "error") await discard(buildId, found.snapshotId);
      store.remove(buildId, now());
    },

    async drain() {
      state.draining = true;
      for (const { cancel } of under.values())
        cancel.abort(new AppError("unavailable", "the build was interrupted: its node is shutting down"));
      await Promise.all([...under.values()].map(({ done }) => done));
    },
  };
}

/**
 * Fails the builds that an earlier agent process left unfinished, and removes their files. Must be called after
 * recovery, which removes their containers.
 */
export async function failInterrupted({
  store,
  discard,
  now,
  log,
}: Pick<BuildsDeps, "store" | "discard" | "now" | "log">): Promise<void> {
  for (const { id, state, snapshotId } of store.all()) {
    if (state !== "building") continue;
    log.info({ buildId: id }, "removing an interrupted build");
    store.fail(id, { message: INTERRUPTED }, now());
    await discard(id, snapshotId).catch((error: unknown) =>
      log.warn({ err: error, buildId: id }, "could not remove an interrupted build"),
    );
  }
}
