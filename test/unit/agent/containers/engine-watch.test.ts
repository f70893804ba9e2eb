import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { createEngineWatch } from "../../../../agent/containers/engine-watch.ts";
import { createLog } from "../../../../shared/program/log.ts";

test("a Docker daemon that is away for long leaves one listener for the stop of the watch", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const seen: AbortSignal[] = [];
  const watch = createEngineWatch({
    containers: {
      list: () => Promise.resolve([]),
      inspect: () => Promise.resolve(undefined),
      watch(_since, _onEvent, signal) {
        seen.push(signal);
        return Promise.reject(new Error("Docker is away"));
      },
    },
    owned: () => [],
    onGone: () => undefined,
    onBack: () => undefined,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  watch.start();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(seen.length).toBeGreaterThan(10);
  expect(getEventListeners(seen[0] as AbortSignal, "abort").length).toBe(1);
  await watch.stop();
  expect(vi.getTimerCount()).toBe(0);
});
