/**
 * Random histories of create, pause, resume, kill and timeout over two orchestrators, each a process, of which one is killed
 * (SIGKILL) at random moments. Whatever they answer, an answer fits the state machine, a sandbox never runs twice, a kill
 * that was answered holds, and in the end both say the same as the nodes. SVC_TEST_TWO_HISTORIES=50 runs as many histories;
 * SVC_TEST_SEED=n repeats one.
 */

import { randomInt } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRandom, type Random } from "../../../fuzz/random.ts";
import { type Pair, startPair } from "../../../support/cluster/pair.ts";
import { until } from "../../../support/runner/until.ts";
import { type Done, isOpen, afterAll as possibleAfter, type State, type Work } from "./two-model.ts";

const HISTORIES = Number(process.env["SVC_TEST_TWO_HISTORIES"] ?? "1");
const SANDBOXES = 4;
const STEPS = 10;
const CRASHES = 2;
const SETTLE_MS = 60_000;

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ settings: { SVC_MISSING_GRACE_MS: "2000", SVC_ORPHAN_GRACE_MS: "10000" } });
}, 180_000);
afterAll(() => pair.stop(), 60_000);

interface Sandbox {
  readonly id: string;
  possible: Set<State>;
  /** It is open what an earlier step has done, which may be finished at any time. */
  open: boolean;
  readonly history: string[];
}

const executions = () => pair.agents.flatMap((agent) => [...agent.live.values()]);
const live = (id: string) => executions().filter(({ body }) => body.sandboxId === id).length;
const fail = (seed: number, { id, history }: Sandbox, why: string) =>
  new Error(`seed ${seed}: sandbox ${id}: ${why}\n${history.join("\n")}`);

const REQUESTS: Readonly<Record<Work, { method: string; path: string; body?: object }>> = {
  pause: { method: "POST", path: "/pause" },
  connect: { method: "POST", path: "/connect", body: { timeout: 300 } },
  kill: { method: "DELETE", path: "" },
  expire: { method: "POST", path: "/timeout", body: { timeout: 1 } },
};

async function perform(by: 0 | 1, sandbox: Sandbox, work: Work): Promise<Done> {
  const { method, path, body } = REQUESTS[work];
  const status = await pair.ask(by, method, `/sandboxes/${sandbox.id}${path}`, body).then(
    (answer) => answer.status,
    () => undefined,
  );
  sandbox.history.push(`${work} at ${by}: ${status ?? "no answer"}`);
  return { work, status };
}

/** Undefined: no answer. */
async function stateAt(by: 0 | 1, { id }: Sandbox): Promise<string | undefined> {
  const answer = await pair.ask(by, "GET", `/sandboxes/${id}`).catch(() => undefined);
  if (answer === undefined || answer.status >= 500) return undefined;
  return answer.status === 404 ? "gone" : (answer.body as { state: string }).state;
}

async function step(seed: number, random: Random, sandbox: Sandbox): Promise<void> {
  const by = () => random.pick([0, 1] as const);
  const works: readonly Work[] = ["pause", "pause", "connect", "connect", "connect", "kill", "expire"];
  const some = () => random.pick(works);
  const first = perform(by(), sandbox, some());
  const done = random.below(10) < 3 ? await Promise.all([first, perform(by(), sandbox, some())]) : [await first];
  const before = sandbox.possible;
  // What was open, or expires, may have happened meanwhile too.
  const expires = before.has("running") && before.has("gone");
  sandbox.possible = possibleAfter(before, done);
  if (sandbox.possible.size === 0 && sandbox.open) sandbox.possible = new Set(["running", "paused", "gone"]);
  if (sandbox.possible.size === 0) throw fail(seed, sandbox, `impossible after ${[...before].join(" or ")}`);
  if (expires && sandbox.possible.has("running")) sandbox.possible.add("gone");
  sandbox.open ||= isOpen(done);
  const isKilled = done.some(({ work, status }) => work === "kill" && status === 204);
  if (isKilled) {
    sandbox.possible = new Set(["gone"]);
    sandbox.open = false;
  }
  if (live(sandbox.id) > 1) throw fail(seed, sandbox, "runs twice");
  const seen = await stateAt(by(), sandbox);
  sandbox.history.push(`seen as ${seen ?? "no answer"}`);
  if (seen === undefined || sandbox.open) return;
  if (!sandbox.possible.has(seen as State)) {
    throw fail(seed, sandbox, `is ${seen}, not ${[...sandbox.possible].join(" or ")}`);
  }
}

async function create(by: 0 | 1): Promise<Sandbox | undefined> {
  const made = await pair.ask(by, "POST", "/v2/sandboxes", { templateID: "base", timeout: 300 }).catch(() => undefined);
  if (made?.status !== 201) return undefined;
  const { sandboxID: id } = made.body as { sandboxID: string };
  return { id, possible: new Set(["running"]), open: false, history: [`created at ${by}`] };
}

/** Both orchestrators and the nodes say the same. */
async function agrees(sandbox: Sandbox): Promise<boolean> {
  const [one, two] = [await stateAt(0, sandbox), await stateAt(1, sandbox)];
  return one !== undefined && one === two && live(sandbox.id) === (one === "running" ? 1 : 0);
}

async function history(seed: number): Promise<void> {
  const random = createRandom(seed, 0);
  const sandboxes: Sandbox[] = [];
  const state = { twice: "" };
  const watching = setInterval(() => {
    const ids = executions().map(({ body }) => body.sandboxId);
    state.twice ||= ids.find((id, index) => ids.indexOf(id) !== index) ?? "";
  }, 5);

  async function client(own: Random): Promise<void> {
    let sandbox: Sandbox | undefined;
    for (let done = 0; done < STEPS; done++) {
      if (sandbox === undefined || (sandbox.possible.size === 1 && sandbox.possible.has("gone"))) {
        sandbox = await create(own.pick([0, 1] as const));
        if (sandbox !== undefined) sandboxes.push(sandbox);
      } else await step(seed, own, sandbox);
    }
  }

  async function crashes(): Promise<void> {
    for (let crash = 0; crash < CRASHES; crash++) {
      await delay(random.below(1_000));
      await pair.orchestrators[random.pick([0, 1] as const)].killAndStart();
    }
  }

  try {
    // Each client has numbers of its own, so that they do not depend on who is faster.
    const clients = Array.from({ length: SANDBOXES }, (_, index) => client(createRandom(seed, 1 + index)));
    await Promise.all([...clients, crashes()]);
    for (const sandbox of sandboxes) {
      await until(() => agrees(sandbox), {
        what: `seed ${seed}: agreement about ${sandbox.id}\n${sandbox.history.join("\n")}\n`,
        timeoutMs: SETTLE_MS,
      });
      const seen = await stateAt(0, sandbox);
      const isPossible = sandbox.open || sandbox.possible.has(seen as State);
      if (!isPossible)
        throw fail(seed, sandbox, `ends as ${seen ?? "nothing"}, not ${[...sandbox.possible].join(" or ")}`);
      if (sandbox.history.some((line) => /^kill at \d: 204$/.test(line)) && seen !== "gone") {
        throw fail(seed, sandbox, "was killed, and is there");
      }
    }
    expect(state.twice, `seed ${seed}: a sandbox that ran twice`).toBe("");
    // Also those whose creator died before it could answer. One that died in the middle of a create leaves nothing.
    const left = (await pair.ask(1, "GET", "/v2/sandboxes")).body as { sandboxID: string }[];
    for (const { sandboxID: id } of left) await pair.ask(1, "DELETE", `/sandboxes/${id}`);
    await until(() => executions().length === 0, {
      what: `seed ${seed}: the end of all executions`,
      timeoutMs: SETTLE_MS,
    });
  } finally {
    clearInterval(watching);
  }
}

test("random histories over two orchestrators that are killed fit the state machine", {
  timeout: 60_000 + HISTORIES * 2 * SETTLE_MS,
}, async () => {
  const given = process.env["SVC_TEST_SEED"];
  for (let run = 0; run < HISTORIES; run++) {
    const seed = given === undefined ? randomInt(2 ** 31) : Number(given);
    console.log(`history ${run + 1} of ${HISTORIES}: SVC_TEST_SEED=${seed}`);
    await history(seed);
  }
});
