import { Sandbox } from "@e2b/code-interpreter";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningInterpreter, runInterpreter, TOKEN } from "./running-interpreter.ts";

let interpreter: RunningInterpreter;
let sandbox: Sandbox;
beforeAll(async () => {
  interpreter = await runInterpreter();
  sandbox = new Sandbox({
    sandboxId: "i1",
    sandboxUrl: interpreter.url,
    envdVersion: "0.4.0",
    envdAccessToken: TOKEN,
    apiKey: `e2b_${"0".repeat(40)}`,
  });
});
afterAll(() => interpreter.stop());

test("the published client gets results, charts, output and errors", async () => {
  const streamed: string[] = [];
  const chart = { type: "unknown", title: null, elements: [] };
  const code = `print é\nvalue ${JSON.stringify({ "text/plain": "'x'", "e2b/chart": JSON.stringify(chart) })}\nraise why`;
  const execution = await sandbox.runCode(code, { onStdout: ({ line }) => void streamed.push(line) });
  expect([execution.text, execution.logs.stdout, streamed]).toEqual(["x", ["é\n"], ["é\n"]]);
  expect(execution.results[0]?.chart).toEqual(chart);
  expect(execution.error).toMatchObject({ name: "ValueError", value: "why" });
});

test("the published client makes, uses, restarts and removes contexts in every language", async () => {
  const context = await sandbox.createCodeContext({ language: "ts", cwd: "/usr" });
  const code = "const a: number = await Promise.resolve(1); console.log(process.cwd(), process.env.X); a";
  const execution = await sandbox.runCode(code, { context, envs: { X: "1" } });
  expect([execution.text, execution.logs.stdout]).toEqual(["1", ["/usr 1\n"]]);
  await sandbox.restartCodeContext(context);
  expect((await sandbox.runCode("typeof a", { context })).text).toBe("undefined");
  expect((await sandbox.listCodeContexts()).map(({ language }) => language)).toContain("typescript");
  await sandbox.removeCodeContext(context);
  await expect(sandbox.runCode("1", { context })).rejects.toThrow(/not found/);
  expect((await sandbox.runCode("echo é; false", { language: "bash" })).error).toMatchObject({ name: "", value: "1" });
});

test("a run that takes too long for the published client is interrupted, and the context answers", async () => {
  await expect(sandbox.runCode("sleep", { timeoutMs: 500 })).rejects.toThrow(/timed out/);
  expect((await sandbox.runCode("print 1")).logs.stdout).toEqual(["1\n"]);
});
