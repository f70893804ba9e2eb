import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningInterpreter, runInterpreter } from "./running-interpreter.ts";

let interpreter: RunningInterpreter;
beforeAll(async () => {
  interpreter = await runInterpreter();
});
afterAll(() => interpreter.stop());

interface Described {
  readonly id: string;
  readonly language: string;
  readonly cwd: string;
}
const list = async () => JSON.parse((await interpreter.call("GET", "/contexts")).body) as Described[];

test("the default contexts are there when the server answers", async () => {
  expect(await interpreter.call("GET", "/health")).toEqual({ status: 200, body: '"OK"' });
  expect(await list()).toMatchObject([
    { language: "python", cwd: interpreter.home },
    { language: "javascript", cwd: interpreter.home },
  ]);
});

test("a run without a context is one of the default context, also after that was removed", async () => {
  const [first] = await list();
  expect(await interpreter.text({ code: "print 1" })).toBe("1\n");
  await interpreter.call("DELETE", `/contexts/${first?.id}`);
  expect(await interpreter.text({ code: "print 2" })).toBe("2\n");
  expect(await interpreter.text({ code: "let a = 1", language: " JS " })).toBe("");
  expect(await interpreter.text({ code: "console.log(a)", language: "javascript" })).toBe("1\n");
  expect(await interpreter.text({ code: "console.log(typeof a)", language: "ts" })).toBe("undefined\n");
  expect((await list()).map(({ language }) => language)).toEqual(["javascript", "python", "typescript"]);
});

test("requests that are wrong get the answers that clients know", async () => {
  const [context] = await list();
  const both = { code: "1", context_id: context?.id, language: "python" };
  expect(await interpreter.call("POST", "/execute", both)).toEqual({
    status: 400,
    body: "Only one of context_id or language can be provided",
  });
  expect(await interpreter.call("POST", "/execute", { code: "1", context_id: "none" })).toEqual({
    status: 404,
    body: "Context none not found",
  });
  expect(await interpreter.call("POST", "/execute", { code: "1", language: "deno" })).toEqual({
    status: 500,
    body: expect.stringMatching(/^Failed to create context: there is no language 'deno'/) as string,
  });
  expect(await interpreter.call("POST", "/contexts", { language: "bash", cwd: "/no" })).toEqual({
    status: 500,
    body: "Failed to create context: Failed to set working directory: /no is not a directory",
  });
  for (const body of [{}, { code: 5 }, { code: "1", env_vars: [] }, { code: "1", env_vars: { A: 1 } }, []])
    expect(await interpreter.call("POST", "/execute", body)).toMatchObject({ status: 422 });
  const malformed = await fetch(`${interpreter.url}/execute`, { method: "POST", body: "{" });
  expect([malformed.status, await malformed.json()]).toEqual([422, { detail: "the body is not JSON" }]);
  expect(await interpreter.call("GET", "/none")).toMatchObject({ status: 404 });
  expect(await interpreter.call("POST", `/contexts/${context?.id}/restart/x`)).toMatchObject({ status: 404 });
});

test("Java runs where a JRE is installed, and the answer names its package where none is", async () => {
  const { status, body } = await interpreter.call("POST", "/contexts", { language: "java" });
  if (status === 500) {
    expect(body).toBe(
      "Failed to create context: the program java is missing: install the package openjdk-17-jre-headless",
    );
    return;
  }
  const { id } = JSON.parse(body) as Described;
  const code = 'int x = 5; System.out.println("é" + System.getProperty("A")); x + 1';
  expect(await interpreter.text({ code, context_id: id, env_vars: { A: "v" } })).toBe("év\n6");
  expect(await interpreter.text({ code: 'System.getProperty("A") + x', context_id: id })).toBe("null5");
  expect(await interpreter.text({ code: 'throw new IllegalStateException("why")', context_id: id })).toBe(
    "java.lang.IllegalStateException",
  );
});

test("Python starts at home when its directory does not exist", async () => {
  const { body } = await interpreter.call("POST", "/contexts", { cwd: "/no/such" });
  const { id, cwd } = JSON.parse(body) as Described;
  expect([cwd, await interpreter.text({ code: "cwd", context_id: id })]).toEqual(["/no/such", `${interpreter.home}\n`]);
});

test("pages of any origin may call", async () => {
  const preflight = await fetch(`${interpreter.url}/execute`, {
    method: "OPTIONS",
    headers: { "access-control-request-headers": "x-access-token" },
  });
  expect([
    preflight.status,
    ...["origin", "methods", "headers"].map((name) => preflight.headers.get(`access-control-allow-${name}`)),
  ]).toEqual([204, "*", "*", "x-access-token"]);
  expect((await fetch(`${interpreter.url}/none`)).headers.get("access-control-allow-origin")).toBe("*");
});

test("fifty contexts run at the same time, each with its own state", async () => {
  const ids = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const { body } = await interpreter.call("POST", "/contexts", { language: "bash" });
      return (JSON.parse(body) as Described).id;
    }),
  );
  await Promise.all(ids.map((id, index) => interpreter.run({ code: `n=${index}`, context_id: id })));
  const answers = await Promise.all(ids.map((id) => interpreter.text({ code: "echo $n", context_id: id })));
  expect(answers).toEqual(ids.map((_id, index) => `${index}\n`));
  await Promise.all(ids.map((id) => interpreter.call("DELETE", `/contexts/${id}`)));
});
