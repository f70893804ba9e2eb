/** A sandbox whose root user stops envd keeps no access that a new policy removes. */

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Started } from "../../../shared/agent-api/routes.ts";
import { CLOSED, type EgressPolicy, OPEN } from "../../../shared/policy/egress-policy.ts";
import { inside, type RealAgent, realAgent } from "../../support/agent/real-agent.ts";

const run = promisify(execFile);
const WORLD = "vetoworld";
const INTERNET = "198.51.100.2";
const PORT = 8080;
const RULES = [{ host: "api.example.test", headers: { "x-rule": "1" } }];

/** Sends "hello" at first, and again for each message that it receives. */
const SERVER = `
require("node:net").createServer((s) => { s.write("hello"); s.on("data", () => s.write("hello")); s.on("error", () => {}); })
  .listen(${PORT}, "0.0.0.0", () => console.log("ready"));
`;
const TRY = `
import socket, sys
s = socket.socket(); s.settimeout(50)
try:
    s.connect((sys.argv[1], ${PORT}))
    print(s.recv(5).decode() or "closed")
except OSError as error: print("refused", error.errno)
`;
/** Holds a connection, and prints what becomes of it once the file is there. */
const HOLD = `
import os, socket, sys, time
s = socket.socket(); s.settimeout(50); s.connect((sys.argv[1], ${PORT})); s.recv(5)
open("/tmp/held", "w").close()
while not os.path.exists("/tmp/go"): time.sleep(0.05)
try:
    s.send(b"more"); print(s.recv(5).decode() or "closed")
except OSError: print("cut")
`;
const signalEnvd = (signal: string) => `
for at in /proc/[0-9]*; do
  pid=\${at#/proc/}
  if [ $pid != 1 ] && [ $pid != $$ ] && tr '\\0' ' ' <$at/cmdline 2>/dev/null | grep -q envd.js; then kill -${signal} $pid && echo done; fi
done`;

let agent: RealAgent;
let sandbox: Started;
const world = { stop: () => undefined as unknown };

beforeAll(async () => {
  await removeWorld();
  await run("ip", ["netns", "add", WORLD]);
  await run("ip", ["link", "add", WORLD, "type", "veth", "peer", "name", "eth0", "netns", WORLD]);
  await run("ip", ["address", "add", "198.51.100.1/24", "dev", WORLD]);
  await run("ip", ["link", "set", WORLD, "up"]);
  await run("ip", ["-n", WORLD, "address", "add", `${INTERNET}/24`, "dev", "eth0"]);
  await run("ip", ["-n", WORLD, "link", "set", "eth0", "up"]);
  await run("ip", ["-n", WORLD, "route", "add", "default", "via", "198.51.100.1"]);
  const server = spawn("ip", ["netns", "exec", WORLD, process.execPath, "-e", SERVER], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  world.stop = () => server.kill("SIGKILL");
  await once(server.stdout, "data");
  agent = await realAgent();
});
afterAll(async () => {
  await agent?.close();
  world.stop();
  await removeWorld();
});
beforeEach(async () => {
  sandbox = await agent.start();
  expect(await reach()).toBe("hello");
  return () => agent.stop(sandbox.executionId);
});

async function removeWorld(): Promise<void> {
  await run("ip", ["link", "delete", WORLD]).catch(() => undefined);
  await run("ip", ["netns", "delete", WORLD]).catch(() => undefined);
}

async function reach(): Promise<string> {
  return (await inside(sandbox.sandboxId, "user", "python3", "-c", TRY, INTERNET)).output.trim();
}

async function envd(signal: "STOP" | "CONT"): Promise<void> {
  const { output } = await inside(sandbox.sandboxId, "root", "sh", "-c", signalEnvd(signal));
  expect(output).toContain("done");
}

const replace = (body: EgressPolicy) =>
  agent.call.replaceEgress({ params: { executionId: sandbox.executionId }, body });

test.each<readonly [string, EgressPolicy, EgressPolicy, string]>([
  ["closes everything", OPEN, CLOSED, "applied"],
  ["closes everything and brings a rule", OPEN, { ...CLOSED, rules: RULES }, "not applied"],
  ["closes everything and keeps a rule", { ...OPEN, rules: RULES }, { ...CLOSED, rules: RULES }, "not applied"],
  ["closes everything and takes a rule away", { ...OPEN, rules: RULES }, CLOSED, "applied"],
])("an update that %s is in force at once with a stopped envd", async (_what, before, after, trust) => {
  await replace(before);
  expect(await reach()).toBe("hello");
  await envd("STOP");
  const answer = await replace(after).catch((error: unknown) => error);
  expect(await reach()).toMatch(/^(refused|closed)/);
  expect(answer).toEqual({ trust });
});

test("an open connection is cut, and the sandbox gets its authority once envd answers again", async () => {
  const held = inside(sandbox.sandboxId, "user", "python3", "-c", HOLD, INTERNET);
  const shell = (script: string) => inside(sandbox.sandboxId, "root", "sh", "-c", script);
  await expect.poll(async () => (await shell("test -e /tmp/held")).code, { timeout: 90_000 }).toBe(0);
  await envd("STOP");
  const policy = { ...CLOSED, rules: RULES };
  const answer = await replace(policy).catch((error: unknown) => error);
  await shell("touch /tmp/go");
  expect((await held).output).toMatch(/^(cut|closed)/);
  expect(answer).toEqual({ trust: "not applied" });
  expect((await shell("cat /run/svc/ca.pem")).code).not.toBe(0);
  await envd("CONT");
  await expect.poll(() => replace(policy), { timeout: 90_000 }).toEqual({ trust: "applied" });
  expect((await shell("grep -c BEGIN /run/svc/ca.pem")).code).toBe(0);
});
