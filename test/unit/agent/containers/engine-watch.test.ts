import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ContainerEvent } from "../../../../agent/containers/containers.ts";
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
    isSandbox: () => false,
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

const DIED = { running: false, pid: 0, exitCode: 137, oomKilled: false, upperDirectory: undefined, cpus: "" };

/** Watches one container of a Docker daemon whose events the test sends. */
async function watchOne(exitCode: number, isSandbox = true) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const owned = new Set(["one"]);
  const gone: object[] = [];
  let send: (event: ContainerEvent) => void = () => undefined;
  const watch = createEngineWatch({
    containers: {
      list: () => Promise.resolve([{ id: "one", running: true }] as never),
      inspect: () => Promise.resolve({ ...DIED, exitCode }),
      watch(_since, onEvent, signal) {
        send = onEvent;
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
      },
    },
    owned: () => [...owned],
    isSandbox: () => isSandbox,
    onGone: (id, exit) => gone.push({ id, ...exit }),
    onBack: () => undefined,
    now: () => Date.now(),
    log: createLog({ component: "test", level: "silent" }),
  });
  watch.start();
  onTestFinished(() => watch.stop());
  await vi.advanceTimersByTimeAsync(0);
  return { owned, gone, send: (event: ContainerEvent) => send(event) };
}

test("a kill for memory that Docker tells after the end of the container is the reason of the end", async () => {
  const { gone, send } = await watchOne(137);
  send({ id: "one", kind: "died", exitCode: 137 });
  await vi.advanceTimersByTimeAsync(1_000);
  expect(gone).toEqual([]);
  send({ id: "one", kind: "oom", exitCode: undefined });
  await vi.advanceTimersByTimeAsync(100);
  expect(gone).toEqual([{ id: "one", reason: "out_of_memory", exitCode: 137 }]);
});

test("an end by a kill that nothing explains is told after a second and a half, any other at once", async () => {
  const killed = await watchOne(137);
  killed.send({ id: "one", kind: "died", exitCode: 137 });
  await vi.advanceTimersByTimeAsync(1_400);
  expect(killed.gone).toEqual([]);
  await vi.advanceTimersByTimeAsync(200);
  expect(killed.gone).toEqual([{ id: "one", reason: "exited", exitCode: 137 }]);
  const ended = await watchOne(1);
  ended.send({ id: "one", kind: "died", exitCode: 1 });
  await vi.advanceTimersByTimeAsync(0);
  expect(ended.gone).toEqual([{ id: "one", reason: "exited", exitCode: 1 }]);
});

test("a container of the pool, or of a paused sandbox, is told as gone at once, so that nothing starts in it", async () => {
  const { gone, send } = await watchOne(137, false);
  send({ id: "one", kind: "died", exitCode: 137 });
  await vi.advanceTimersByTimeAsync(0);
  expect(gone).toEqual([{ id: "one", reason: "exited", exitCode: 137 }]);
});

test("a sandbox that the platform ends while its kill is looked into is not told as gone", async () => {
  const { owned, gone, send } = await watchOne(137);
  send({ id: "one", kind: "died", exitCode: 137 });
  await vi.advanceTimersByTimeAsync(500);
  owned.delete("one");
  await vi.advanceTimersByTimeAsync(5_000);
  expect(gone).toEqual([]);
});
