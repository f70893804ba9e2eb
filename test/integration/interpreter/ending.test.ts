import { existsSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningInterpreter, runInterpreter } from "./running-interpreter.ts";

let interpreter: RunningInterpreter;
beforeAll(async () => {
  interpreter = await runInterpreter();
});
afterAll(() => interpreter.stop());

const created = async (language: string) => {
  const { body } = await interpreter.call("POST", "/contexts", { language });
  return (JSON.parse(body) as { id: string }).id;
};
/** Runs the code, and closes the connection when the run has begun. */
const abandoned = async (code: string, id: string) => {
  const left = new AbortController();
  const response = await fetch(`${interpreter.url}/execute`, {
    method: "POST",
    body: JSON.stringify({ code, context_id: id }),
    signal: left.signal,
  });
  const reader = response.body?.getReader();
  await reader?.read();
  left.abort();
  await reader?.cancel().catch(() => undefined);
};

describe("a client that leaves", () => {
  test.each([
    ["python", "sleep", "print 1", "1\n"],
    ["javascript", "while (true);", "console.log(kept)", "yes\n"],
    ["javascript", "await new Promise(() => setTimeout(() => {}, 1e6))", "console.log(typeof kept)", "undefined\n"],
    ["bash", "sleep 300; echo on", "echo $kept", "yes\n"],
    ["bash", "while true; do :; done", "echo $kept", "yes\n"],
    ["bash", "read -r line; cat; sleep 300", "echo $kept", "yes\n"],
  ])("interrupts %s in %j, and the context answers", async (language, code, next, answer) => {
    const id = await created(language);
    const keep = language === "bash" ? "kept=yes" : "const kept = 'yes'";
    if (language !== "python") await interpreter.run({ code: keep, context_id: id });
    await abandoned(code, id);
    expect(await interpreter.text({ code: next, context_id: id })).toBe(answer);
  });

  test("does not cost the context its state", async () => {
    const id = await created("python");
    const before = await interpreter.text({ code: "pid", context_id: id });
    await abandoned("sleep", id);
    expect(await interpreter.text({ code: "pid", context_id: id })).toBe(before);
  });

  test("ends a kernel that does not react, and the context starts again", async () => {
    const id = await created("javascript");
    await abandoned(
      "process.removeAllListeners('SIGINT'); process.on('SIGINT', () => {}); await new Promise(() => {})",
      id,
    );
    expect(await interpreter.text({ code: "console.log(1)", context_id: id })).toBe("1\n");
  });

  test("before its turn never runs", async () => {
    const id = await created("bash");
    const first = interpreter.text({
      code: "touch begun; until [ -e go ]; do sleep 0.05; done; rm begun go; echo first",
      context_id: id,
    });
    await expect.poll(() => existsSync(join(interpreter.home, "begun"))).toBe(true);
    await expect(
      interpreter.run({ code: "touch ran", context_id: id }, { signal: AbortSignal.timeout(300) }),
    ).rejects.toThrow();
    writeFileSync(join(interpreter.home, "go"), "");
    expect(await first).toBe("first\n");
    expect(await interpreter.text({ code: "ls", context_id: id })).toBe("");
  });

  test("in the middle of a flood lets the kernel go", async () => {
    const id = await created("javascript");
    const socket = createConnection(Number(new URL(interpreter.url).port), "127.0.0.1");
    const body = JSON.stringify({ code: "for (;;) console.log('x'.repeat(1e5))", context_id: id });
    socket.write(`POST /execute HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    await new Promise((resolve) => setTimeout(resolve, 300));
    socket.destroy();
    expect(await interpreter.text({ code: "console.log(1)", context_id: id })).toBe("1\n");
  });
});

describe("a kernel that ends", () => {
  test.each([
    ["python", "die", "the kernel was killed, probably because memory ran out"],
    ["python", "exit 3", "the kernel ended with exit code 3"],
    ["javascript", "process.kill(process.pid, 'SIGKILL')", "the kernel was killed, probably because memory ran out"],
    ["javascript", "process.exit(3)", "the kernel ended with exit code 3"],
    [
      "bash",
      "exit 3",
      "the kernel ended with exit code 3: `exit`, and a command that fails after `set -e`, end the shell",
    ],
  ])("is started again: %s after %j", async (language, code, reason) => {
    const id = await created(language);
    expect((await interpreter.run({ code, context_id: id })).slice(-2)).toEqual([
      { type: "error", name: "ContextRestarting", value: `Context was restarted: ${reason}`, traceback: "" },
      { type: "end_of_execution" },
    ]);
    const next = { python: "print 1", javascript: "console.log(1)", bash: "echo 1" }[language] ?? "";
    expect(await interpreter.run({ code: next, context_id: id })).toMatchObject([
      { type: "number_of_executions", execution_count: 1 },
      { type: "stdout", text: "1\n" },
      { type: "end_of_execution" },
    ]);
  });

  test.each(["soon", "late"])("after exit() is gone before the next run: %s", async (when) => {
    const id = await created("python");
    const before = await interpreter.text({ code: "pid", context_id: id });
    const runs = [`leave ${when}`, "pid"].map((code) => interpreter.run({ code, context_id: id }));
    const [left = [], next = []] = await Promise.all(runs);
    expect(left.map(({ type }) => type)).toEqual(["number_of_executions", "end_of_execution"]);
    expect(next.filter(({ type }) => type === "error")).toEqual([]);
    expect(next).not.toContainEqual(expect.objectContaining({ text: before }));
    await interpreter.run({ code: "leave kept", context_id: id });
    expect(next).toContainEqual(
      expect.objectContaining({ text: await interpreter.text({ code: "pid", context_id: id }) }),
    );
  });

  test("between two runs is started again", async () => {
    const id = await created("python");
    process.kill(Number(await interpreter.text({ code: "pid", context_id: id })), "SIGKILL");
    await expect.poll(() => interpreter.text({ code: "print 1", context_id: id })).toBe("1\n");
  });
});

describe("a restart", () => {
  test("takes an empty body of JSON, ends the run under way, and keeps the context without its state", async () => {
    const id = await created("bash");
    await interpreter.run({ code: "kept=yes", context_id: id });
    const running = await interpreter.taken({ code: "echo begun; sleep 300", context_id: id });
    expect(await interpreter.call("POST", `/contexts/${id}/restart`)).toEqual({ status: 200, body: "null" });
    expect((await running.lines).slice(-2)).toEqual([
      { type: "error", name: "ContextRestarting", value: "Context was restarted", traceback: "" },
      { type: "end_of_execution" },
    ]);
    expect(await interpreter.text({ code: "echo $kept.", context_id: id })).toBe(".\n");
  });

  test("keeps the working directory", async () => {
    for (const [language, code] of [
      ["python", "cwd"],
      ["javascript", "console.log(process.cwd())"],
      ["bash", "pwd"],
    ] as const) {
      const { body } = await interpreter.call("POST", "/contexts", { language, cwd: "/usr" });
      const { id } = JSON.parse(body) as { id: string };
      expect(await interpreter.text({ code, context_id: id })).toBe("/usr\n");
      await interpreter.call("POST", `/contexts/${id}/restart`);
      expect(await interpreter.text({ code, context_id: id })).toBe("/usr\n");
    }
  });
});

test("a removed context ends its run, and what waits for it", async () => {
  const id = await created("bash");
  const running = await interpreter.taken({ code: "sleep 300", context_id: id });
  const waiting = await interpreter.taken({ code: "echo 1", context_id: id });
  expect(await interpreter.call("DELETE", `/contexts/${id}`)).toEqual({ status: 200, body: "null" });
  for (const { lines } of [running, waiting])
    expect(await lines).toContainEqual(expect.objectContaining({ name: "ContextRemoved" }));
  expect(await interpreter.call("DELETE", `/contexts/${id}`)).toEqual({
    status: 404,
    body: `Context ${id} not found`,
  });
});
