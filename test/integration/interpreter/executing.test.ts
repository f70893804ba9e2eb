import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningInterpreter, runInterpreter, TOKEN } from "./running-interpreter.ts";

let interpreter: RunningInterpreter;
beforeAll(async () => {
  interpreter = await runInterpreter();
});
afterAll(() => interpreter.stop());

const inContext = async (language = "python") => {
  const { body } = await interpreter.call("POST", "/contexts", { language });
  const { id } = JSON.parse(body) as { id: string };
  return { id, text: (code: string, more: object = {}) => interpreter.text({ code, context_id: id, ...more }) };
};

test("a run answers its lines in order, and ends with the end", async () => {
  const code = 'print é\nshow {"text/plain":"1"}\nvalue {"text/plain":"\'x\'","e2b/chart":{"a":5.0}}\nraise why';
  const lines = await interpreter.run({ code, context_id: (await inContext()).id, language: null, env_vars: null });
  expect(lines).toMatchObject([
    { type: "number_of_executions", execution_count: 1 },
    { type: "stdout", text: "é\n", timestamp: expect.stringMatching(/^\d{4}-/) as string },
    { type: "result", text: "1", is_main_result: false, extra: {} },
    { type: "result", text: "x", chart: { a: 5 }, is_main_result: true },
    { type: "error", name: "ValueError", value: "why", traceback: "ValueError: why" },
    { type: "end_of_execution" },
  ]);
});

test("the stream of a run is ASCII, and its numbers are those of the kernel", async () => {
  const value = 'value {"text/plain":"é","application/json":"{\\"a\\": 5.0, \\"b\\": 12345678901234567890}"}';
  const response = await fetch(`${interpreter.url}/execute?source=x`, {
    method: "POST",
    body: JSON.stringify({ code: value }),
  });
  const text = await response.text();
  expect(response.headers.get("content-encoding")).toBeNull();
  expect(text).toMatch(/^[\n\x20-\x7e]*$/);
  expect(text).toContain('"json":{"a": 5.0, "b": 12345678901234567890}');
});

test("silent changes of a kernel count as no execution", async () => {
  const context = await inContext();
  await context.text("print 1", { env_vars: { A: "1" } });
  expect(await interpreter.run({ code: "print 2", context_id: context.id })).toContainEqual({
    type: "number_of_executions",
    execution_count: 2,
  });
});

test("runs of one context wait for each other, those of two do not", async () => {
  const [slow, other] = [await inContext("bash"), await inContext("bash")];
  const order: string[] = [];
  const note = (name: string, text: Promise<string>) => text.then(() => order.push(name));
  const waiting = [note("first", slow.text("until [ -e go ]; do sleep 0.05; done")), note("second", slow.text("true"))];
  await note("other", other.text("true"));
  expect(order).toEqual(["other"]);
  await other.text("touch go");
  await Promise.all(waiting);
  expect(order).toEqual(["other", "first", "second"]);
});

test("a silent run and one that waits for it are kept alive", async () => {
  const { id } = await inContext("bash");
  const runs = ["sleep 5.5", "true"].map((code) => interpreter.run({ code, context_id: id }));
  for (const lines of await Promise.all(runs)) expect(lines).toContainEqual({ type: "keepalive" });
});

describe("variables", () => {
  test("of the sandbox are in every kernel, new ones before the next run", async () => {
    const context = await inContext();
    interpreter.envs = { A: `1 "é' $x`, E2B_SANDBOX_ID: "i1" };
    expect(await context.text("env A\nenv E2B_SANDBOX_ID\nenv STARTED_WITH")).toBe(`1 "é' $x\ni1\nit\n`);
    interpreter.envs = { B: "2", STARTED_WITH: "other" };
    expect(await context.text("env A\nenv B\nenv STARTED_WITH")).toBe("none\n2\nother\n");
    interpreter.envs = {};
    expect(await context.text("env B\nenv STARTED_WITH")).toBe("none\nit\n");
  });

  test("of a run are gone after it, and the sandbox's are back", async () => {
    for (const [language, code] of [
      ["python", "env A\nenv C"],
      ["bash", 'echo "$A"; echo "${C-none}"'],
      ["javascript", 'console.log(process.env.A); console.log(process.env.C ?? "none")'],
    ] as const) {
      interpreter.envs = { A: "sandbox" };
      const context = await inContext(language);
      expect(await context.text(code, { env_vars: { A: "run", C: `'"\\` } })).toBe(`run\n'"\\\n`);
      expect(await context.text(code)).toBe("sandbox\nnone\n");
    }
  });

  test("stay as they are when envd refuses the caller", async () => {
    const context = await inContext();
    interpreter.envs = { A: "known" };
    await context.text("print 1");
    const lines = await interpreter.run({ code: "env A", context_id: context.id }, { token: `not ${TOKEN}` });
    expect(lines).toContainEqual(expect.objectContaining({ text: "known\n" }));
  });
});

test("random numbers are seeded again after each start, resume and fork, and only then", async () => {
  const [python, bash, script] = [await inContext(), await inContext("bash"), await inContext("javascript")];
  await bash.text("RANDOM=1");
  await script.text("const kept = Math.random; Math.random = () => 2");
  expect(await python.text("reseeds")).toBe("0\n");
  // Under an envd of before the execution's id, then under a newer one; a resume keeps the sandbox's id.
  for (const [sandboxId, executionId] of [["s1"], ["s1"], ["s2"], ["s2", "e1"], ["s2", "e2"]] as const) {
    interpreter.continueAs(sandboxId, executionId);
    await python.text("reseeds");
  }
  expect(await python.text("reseeds")).toBe("5\n");
  expect(await bash.text("echo $RANDOM")).not.toBe("16807\n");
  const drawn = await script.text("console.log(Math.random(), kept() < 1, crypto.randomUUID().length)");
  // A program's own function stays, and one that it kept goes on with other numbers.
  expect(drawn).toBe("2 true 36\n");
});

test("100 MB for a slow client arrive whole, and are not held in memory", async () => {
  const before = process.memoryUsage().rss;
  const response = await fetch(`${interpreter.url}/execute`, {
    method: "POST",
    body: JSON.stringify({ code: "flood 1000", context_id: (await inContext()).id }),
  });
  let most = 0;
  let size = 0;
  let pieces = 0;
  for await (const piece of response.body ?? []) {
    size += (piece as Uint8Array).length;
    pieces += 1;
    if (pieces < 20) await new Promise((resolve) => setTimeout(resolve, 50));
    most = Math.max(most, process.memoryUsage().rss);
  }
  expect(size).toBeGreaterThan(100_000_000);
  // Of client and server together, with what waits for the collector.
  expect(most - before).toBeLessThan(400 * 1024 * 1024);
});
