import { expect, onTestFinished, test } from "vitest";
import type { AskedValue } from "../../../../agent/egress/channel/messages.ts";
import { createValues } from "../../../../agent/placeholders/values.ts";
import { AppError } from "../../../../shared/http/errors.ts";
import { type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";

const RUN = "11111111-1111-4111-8111-111111111111";
const SECRET = "e2b.secrets.KEY";
const TOKEN = "e2b.identity.tokens.me";
const POLICY: EgressPolicy = {
  ...OPEN,
  rules: [{ host: "api.test", headers: { a: "Bearer ${svc.secrets.KEY}", b: "${e2b.identity.tokens.me}" } }],
};
const asked = (placeholder = SECRET, executionId = RUN): AskedValue => ({ executionId, placeholder, host: "api.test" });

type Answer = () => Promise<{ value: string; usableUntil: number }>;

function setup() {
  const state = {
    now: 1_000_000,
    calls: [] as string[],
    used: [] as AskedValue[],
    ended: 0,
    answer: (async () => ({ value: "v1", usableUntil: 2 ** 50 })) as Answer,
  };
  const values = createValues({
    orchestrator: {
      async resolveValue({ body }) {
        state.calls.push(`${body.executionId} ${body.asks}`);
        return state.answer();
      },
    },
    onUse: (one) => void state.used.push(one),
    onEnd: () => {
      state.ended += 1;
    },
    now: () => state.now,
    pausesMs: [0],
  });
  onTestFinished(() => values.stop());
  return { values, state, ask: async (one: AskedValue) => (await values.resolve(one)).answer };
}

test("a secret is asked for again when a second has passed since the last question", async () => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  expect(await ask(asked())).toEqual({ value: "v1" });
  state.answer = async () => ({ value: "v2", usableUntil: 2 ** 50 });
  state.now += 999;
  expect(await ask(asked())).toEqual({ value: "v1" });
  state.now += 1;
  expect(await ask(asked())).toEqual({ value: "v2" });
  expect(state.calls).toEqual([`${RUN} ${SECRET}`, `${RUN} ${SECRET}`]);
  expect(state.used).toHaveLength(3);
});

test("the second is counted from the question, so that a slow answer is kept no longer", async () => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  state.answer = async () => {
    state.now += 1_500;
    return { value: "slow", usableUntil: 2 ** 50 };
  };
  await ask(asked());
  await ask(asked());
  expect(state.calls).toHaveLength(2);
});

test("a token is kept until half a minute before it must not be used any more", async () => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  state.answer = async () => ({ value: "t", usableUntil: state.now + 300_000 });
  await ask(asked(TOKEN));
  state.now += 269_999;
  await ask(asked(TOKEN));
  expect(state.calls).toHaveLength(1);
  state.now += 1;
  await ask(asked(TOKEN));
  expect(state.calls).toHaveLength(2);
});

test("a value is asked for again when the clock was set back by an hour since it came", async () => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  await ask(asked());
  state.now -= 3_600_000;
  state.answer = async () => ({ value: "v2", usableUntil: 2 ** 50 });
  expect(await ask(asked())).toEqual({ value: "v2" });
});

test("requests at the same time share one question, those of another execution do not", async () => {
  const { values, state, ask } = setup();
  const other = "22222222-2222-4222-8222-222222222222";
  for (const run of [RUN, other]) values.begin(run, POLICY);
  state.answer = async () => ({ value: `v${state.calls.length}`, usableUntil: 2 ** 50 });
  const answers = await Promise.all([RUN, RUN, other].map((run) => ask(asked(SECRET, run))));
  expect(state.calls.sort()).toEqual([`${RUN} ${SECRET}`, `${other} ${SECRET}`]);
  expect(answers[0]).toEqual(answers[1]);
});

test.each([
  ["no execution", "33333333-3333-4333-8333-333333333333", SECRET],
  ["a placeholder that no rule has", RUN, "e2b.secrets.OTHER"],
])("%s gets nothing, and the orchestrator is not asked", async (_, run, placeholder) => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  expect(await ask(asked(placeholder, run))).toEqual({ problem: "no rule of the sandbox has it" });
  expect([state.calls, state.used, values.results().refused]).toEqual([[], [], 1]);
});

test("a pause, an end and a new policy drop the values", async () => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  await ask(asked());
  values.begin(RUN, POLICY);
  await ask(asked());
  expect(state.calls).toHaveLength(2);
  values.end(RUN);
  expect(await ask(asked())).toHaveProperty("problem");
  expect(state.ended).toBe(1);
  values.begin(RUN, POLICY);
  await ask(asked());
  expect(state.calls).toHaveLength(3);
});

test.each([
  ["the execution has ended", undefined],
  ["the policy has changed", POLICY],
])("a value that arrives when %s is not handed out", async (_, policy) => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  let answer: (value: { value: string; usableUntil: number }) => void = () => undefined;
  state.answer = () => new Promise((resolve) => (answer = resolve));
  const first = ask(asked());
  await expect.poll(() => state.calls.length).toBe(1);
  if (policy === undefined) values.end(RUN);
  else values.begin(RUN, policy);
  answer({ value: "late", usableUntil: 2 ** 50 });
  expect(await first).toEqual({ problem: "the sandbox or its rules have changed in the meantime" });
  expect(state.used).toEqual([]);
});

test.each([
  ["not_found", "missing", "there is no secret KEY", 1],
  ["forbidden", "refused", "not yours", 1],
  ["unavailable", "unavailable", "the orchestrator does not answer", 2],
  ["internal", "unavailable", "the orchestrator does not answer", 2],
] as const)("the answer %s gives no value, after %s", async (code, result, problem, calls) => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  state.answer = () => Promise.reject(new AppError(code, problem));
  expect(await ask(asked())).toEqual({ problem });
  // A program that repeats its request at once does not reach the orchestrator.
  expect(await ask(asked())).toEqual({ problem });
  expect([state.calls.length, values.results()[result]]).toEqual([calls, 2]);
  state.now += 500;
  state.answer = async () => ({ value: "back", usableUntil: 2 ** 50 });
  expect(await ask(asked())).toEqual({ value: "back" });
});

test("an orchestrator that answers at the second attempt gives the value", async () => {
  const { values, state, ask } = setup();
  values.begin(RUN, POLICY);
  state.answer = () => {
    state.answer = async () => ({ value: "second", usableUntil: 2 ** 50 });
    return Promise.reject(new AppError("node_unreachable", "away"));
  };
  expect(await ask(asked())).toEqual({ value: "second" });
});

test("one execution's questions have a rate, and another execution has its own", async () => {
  const { values, state, ask } = setup();
  const headers = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, `\${e2b.secrets.S${i}}`]));
  const many = { ...OPEN, rules: [{ host: "api.test", headers }] };
  const other = "22222222-2222-4222-8222-222222222222";
  for (const run of [RUN, other]) values.begin(run, many);
  const askAll = (run: string) =>
    Promise.all(Array.from({ length: 100 }, (_, i) => ask(asked(`e2b.secrets.S${i}`, run))));
  const answers = await askAll(RUN);
  expect(answers.filter((answer) => "value" in answer)).toHaveLength(64);
  expect(values.results()).toEqual({ used: 64, missing: 0, refused: 0, unavailable: 36 });
  await askAll(other);
  expect(state.calls).toHaveLength(128);
});

test("a value may be kept by the egress process until the second of a secret is over, and a token for a second", async () => {
  const { values, state } = setup();
  values.begin(RUN, POLICY);
  state.answer = async () => {
    state.now += 300;
    return { value: "v", usableUntil: state.now + 600_000 };
  };
  expect(await values.resolve(asked())).toEqual({ answer: { value: "v" }, keepMs: 700 });
  expect(await values.resolve(asked(TOKEN))).toEqual({ answer: { value: "v" }, keepMs: 1_000 });
  values.used(asked(), 5);
  expect([state.used.length, values.results().used]).toEqual([3, 7]);
});
