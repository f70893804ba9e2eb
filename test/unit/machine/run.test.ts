/** Programs that the machine's parts start: what becomes of them when the operator ends the command. */

import { expect, test } from "vitest";
import { lastWords, run } from "../../../machine/base/commands.ts";

test("a program is killed with what it has started when the command is ended", async () => {
  const ended = new AbortController();
  const begun = performance.now();
  const said = run("sh", ["-c", "sleep 600 & sleep 600"], { limitMs: 600_000, signal: ended.signal });
  setTimeout(() => ended.abort(), 100);
  expect(lastWords(await said)).toBe("interrupted");
  expect(performance.now() - begun).toBeLessThan(60_000);
});

test("no program is started after the end of the command", async () => {
  const said = await run("sh", ["-c", "echo started"], { signal: AbortSignal.abort() });
  expect(said).toMatchObject({ status: undefined, stdout: "", problem: "interrupted" });
});

test("a program that ends by itself is not called interrupted", async () => {
  const said = await run("sh", ["-c", "echo done"], { signal: new AbortController().signal });
  expect(said).toMatchObject({ status: 0, stdout: "done\n", problem: undefined });
});
