/** The wait for the envd of a container that Docker has started. */

import { expect, test } from "vitest";
import { envdAnswers } from "../../../../agent/sandboxes/boot.ts";

const container = { id: "c1", slot: { address: "10.0.0.7" }, controlToken: "t" };

interface World {
  readonly pid?: number;
  readonly alive?: () => boolean;
  /** What Docker's description waits for. */
  readonly described?: Promise<void>;
}

function world({ pid = 7, alive = () => true, described = Promise.resolve() }: World) {
  const asked: AbortSignal[] = [];
  const answer: { give?: () => void } = {};
  const docker = {
    containers: { inspect: () => described.then(() => ({ running: pid !== 0, pid })) },
    openCgroup: () => ({ alive }),
    envd: {
      ready: (_at: unknown, signal: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          asked.push(signal);
          answer.give = resolve;
          signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
        }),
    },
  };
  return { asked, answer, answers: (signal: AbortSignal) => envdAnswers(container as never, docker as never, signal) };
}

const forever = new AbortController().signal;

test("envd is asked while Docker describes the container", async () => {
  const described = { give: (): void => undefined };
  const waits = new Promise<void>((resolve) => {
    described.give = resolve;
  });
  const { asked, answer, answers } = world({ described: waits });
  const found = answers(forever);
  expect(asked).toHaveLength(1);
  answer.give?.();
  described.give();
  expect(await found).toMatchObject({ found: { pid: 7 } });
});

test.each([
  { what: "does not run", pid: 0, alive: () => true },
  { what: "dies before envd answers", pid: 7, alive: () => false },
])("a container that $what fails at once, and envd is not asked any more", async ({ pid, alive }) => {
  const { asked, answers } = world({ pid, alive });
  await expect(answers(forever)).rejects.toMatchObject({ code: "sandbox_create_failed" });
  expect(asked[0]?.aborted).toBe(true);
});

test("a wait that is given up ends with its reason", async () => {
  const limit = new AbortController();
  const { answers } = world({});
  const wait = answers(limit.signal);
  limit.abort(new Error("too late"));
  await expect(wait).rejects.toThrow("too late");
});
