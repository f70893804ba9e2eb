import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../../support/peers/listening.ts";
import { fakePython } from "./running-interpreter.ts";

const ROOT = join(import.meta.dirname, "../../..");
let directory: string;
let supervisor: ChildProcess;
let url: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "ci-"));
  const build = ["--import", "tsx", join(ROOT, "scripts/build.ts"), "interpreter", "--to", directory];
  execFileSync(process.execPath, build, { cwd: ROOT, stdio: "pipe" });
  const home = join(directory, "home");
  mkdirSync(home);
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  supervisor = spawn(process.execPath, [join(directory, "interpreter/main.js")], {
    stdio: "ignore",
    env: {
      PATH: `${fakePython(directory)}:${process.env["PATH"] ?? ""}`,
      SVC_INTERPRETER_PORT: String(port),
      SVC_INTERPRETER_HOME: home,
      SVC_INTERPRETER_RUNTIME: join(directory, "run"),
    },
  });
});
afterAll(async () => {
  const ended = new Promise((resolve) => supervisor.once("exit", resolve));
  supervisor.kill("SIGTERM");
  await ended;
  rmSync(directory, { recursive: true, force: true });
});

const health = async () => {
  try {
    return await (await fetch(`${url}/health`)).text();
  } catch {
    return "";
  }
};
const printed = async (code: string, language: string) => {
  const response = await fetch(`${url}/execute`, { method: "POST", body: JSON.stringify({ code, language }) });
  const lines = (await response.text()).trimEnd().split("\n");
  return lines.map((line) => (JSON.parse(line) as { text?: string }).text ?? "").join("");
};

test("the bundle runs every language, and a killed server is back with new contexts", async () => {
  await expect.poll(health).toBe('"OK"');
  expect(await printed("print 1", "python")).toBe("1\n");
  expect(await printed("let a: number = 1; console.log(a)", "typescript")).toBe("1\n");
  expect(await printed("kept=yes; echo $kept", "bash")).toBe("yes\n");
  const child = () => Number(readFileSync(`/proc/${supervisor.pid}/task/${supervisor.pid}/children`, "utf8").trim());
  const server = child();
  const kernel = Number(await printed("pid", "python"));
  process.kill(server, "SIGKILL");
  await expect.poll(child).not.toBe(server);
  await expect.poll(health).toBe('"OK"');
  // One that ended and that nobody waited for has no command line.
  const commandLine = `/proc/${kernel}/cmdline`;
  expect(existsSync(commandLine) ? readFileSync(commandLine, "utf8") : "").toBe("");
  expect(await printed("print 2", "python")).toBe("2\n");
  expect(await printed("echo $kept.", "bash")).toBe(".\n");
});
