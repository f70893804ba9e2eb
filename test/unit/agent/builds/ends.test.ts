/** What a build leaves in the process that ran it. */

import { randomUUID } from "node:crypto";
import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { createBuilds } from "../../../../agent/builds/builds.ts";
import { startAndWait } from "../../../../agent/builds/finish.ts";
import type { BuildContainer } from "../../../../agent/builds/steps/build-container.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { createSemaphore } from "../../../../shared/program/semaphore.ts";
import { gateway } from "../../../support/runner/promises.ts";

const ENDED = { exitCode: 0, status: "exit status 0" };

test("the timer of a build's limit is gone with the build", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const recorded = gateway();
  const builds = createBuilds({
    store: { get: () => undefined, begin: () => undefined, succeed: () => recorded.resolve(), log: () => undefined },
    build: () => Promise.resolve({}),
    discard: () => Promise.resolve(),
    semaphore: createSemaphore(1),
    refusal: () => undefined,
    now: () => 0,
    log: createLog({ component: "test", level: "silent" }),
  } as unknown as Parameters<typeof createBuilds>[0]);
  builds.start(randomUUID(), { templateId: "t", limitMs: 3_600_000 } as Parameters<typeof builds.start>[1]);
  await recorded.promise;
  await builds.drain();
  expect(vi.getTimerCount()).toBe(0);
});

test("a template that is ready leaves no listener and no timer at the signal of its build", async () => {
  const { signal } = new AbortController();
  const buildContainer = {
    start: () => Promise.resolve({ pid: 2, ended: Promise.resolve(ENDED) }),
    run: () => Promise.resolve(ENDED),
  } as unknown as BuildContainer;
  const log = {
    write: () => undefined,
    output: () => ({ push: () => undefined, end: () => undefined }),
    flush: () => undefined,
  };
  const settings = { envs: {}, user: "user", workdir: "/", startCmd: "serve", readyCmd: "ready" };
  await startAndWait(settings, buildContainer, { log, now: () => 0 }, signal);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
