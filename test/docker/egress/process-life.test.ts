/** The egress process from its start to its end and under load, and what it does when it cannot work. */

import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { CLOSED, OPEN } from "../../../shared/policy/egress-policy.ts";
import { type Bench, type BenchOptions, BOX, openBench } from "../../support/egress/namespaces.ts";
import { ALLOWED, SECOND } from "../../support/egress/plan.ts";

let bench: Bench | undefined;
afterEach(async () => {
  await bench?.stop();
  bench = undefined;
});

const policy = { ...CLOSED, allowDomains: ["allowed.test"], allowRanges: [SECOND] };

async function open(options: Partial<BenchOptions> = {}): Promise<Bench> {
  bench = await openBench({ name: "egl", ...options });
  return bench;
}

async function begun(options: Partial<BenchOptions> = {}): Promise<Bench> {
  const bench = await open(options);
  await bench.begin(policy, options);
  return bench;
}

const ssh = { address: ALLOWED, port: 22, until: "SSH" };

test("the egress process serves nothing before it knows a sandbox", async () => {
  const bench = await open();
  expect(
    await bench.ask({ is: "set", sandbox: { address: BOX, executionId: "e", sandboxId: "s", policy: OPEN } }),
  ).toMatchObject({
    is: "failed",
    message: "not begun",
  });
  // No process listens, so the packet goes on to where the agent's rules for redirected links drop it.
  expect((await bench.attempt({ ...ssh, limitMs: 3_000 })).how).toBe("late");
  expect(bench.seen).toEqual([]);
  await bench.begin(policy);
  expect(await bench.attempt(ssh)).toMatchObject({ how: "seen" });
});

test("a sandbox unknown to the egress process gets neither a connection nor a name", async () => {
  const bench = await open();
  await bench.begin(policy, {}, []);
  expect(await bench.attempt(ssh)).toMatchObject({ how: "reset", code: "ECONNRESET" });
  const question = Buffer.from("\0\x07\x01\0\0\x01\0\0\0\0\0\0\x07allowed\x04test\0\0\x01\0\x01", "latin1");
  const ask = { address: "10.211.0.1", port: 53, datagram: question.toString("base64"), limitMs: 20_000 };
  expect(await bench.attempt({ ...ask, limitMs: 500 })).toMatchObject({ how: "late" });
  expect(bench.seen).toEqual([]);
  await bench.policy(policy);
  const answer = Buffer.from((await bench.attempt(ask)).received, "base64");
  expect(answer.subarray(-4).join(".")).toBe(ALLOWED);
});

test.each(["disconnect", "SIGTERM"])("at %s the egress process ends, and connections with it", async (how) => {
  const bench = await begun();
  const open = bench.attempt({ address: ALLOWED, port: 8443, send: ["a"], limitMs: 60_000 });
  await expect.poll(() => bench.seen.length).toBe(1);
  if (how === "disconnect") bench.disconnect();
  else process.kill(bench.egressPid, "SIGTERM");
  expect((await open).how).toMatch(/end|reset/);
  await expect.poll(() => bench.ended()).toBe(true);
  bench.seen.length = 0;
  expect((await bench.attempt({ ...ssh, limitMs: 3_000 })).how).toMatch(/reset|late/);
  expect(bench.seen).toEqual([]);
});

test("an egress process without free descriptors refuses connections, and takes them again afterwards", async () => {
  const bench = await begun({ connectionsPerSandbox: 1_000 });
  // The process's own user sets the limit: on some machines root lacks the capability that it needs for this.
  const { uid } = statSync(`/proc/${bench.egressPid}`);
  const asItself = ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups"];
  execFileSync("setpriv", [...asItself, "prlimit", "--pid", String(bench.egressPid), "--nofile=80:80"]);
  const outcomes = await Promise.all(
    Array.from({ length: 100 }, () => bench.attempt({ address: ALLOWED, port: 8443, send: ["a"], limitMs: 15_000 })),
  );
  expect(outcomes.filter(({ received }) => received !== "").length).toBeGreaterThan(3);
  expect(outcomes.filter(({ how }) => how !== "late").length).toBeGreaterThan(30);
  await expect.poll(async () => (await bench.attempt(ssh)).how).toBe("seen");
  expect(bench.ended()).toBe(false);
});

test("a thousand connections at once are all carried", async () => {
  const bench = await begun({ connectionsPerSandbox: 2_000 });
  const outcomes = await Promise.all(
    Array.from({ length: 1_000 }, (_, i) =>
      bench.attempt({ address: ALLOWED, port: 8443, send: [`${i}.`], until: `${i}.`, limitMs: 120_000 }),
    ),
  );
  expect(outcomes.filter(({ how }) => how === "seen")).toHaveLength(1_000);
});

test("data that a client does not read is not kept in memory", async () => {
  const bench = await begun();
  const memory = () =>
    Number(/VmRSS:\s+(\d+)/.exec(execFileSync("cat", [`/proc/${bench.egressPid}/status`]).toString())?.[1]) / 1024;
  await bench.attempt({ address: ALLOWED, port: 5001, send: ["100000000\n"], limitMs: 60_000 });
  const before = memory();
  await bench.attempt({ address: ALLOWED, port: 5001, send: ["1000000000\n"], lazy: true, limitMs: 2_000 });
  expect(memory() - before).toBeLessThan(60);
});

test("a gigabyte comes whole through the egress process, and as whole directly", async () => {
  const bench = await begun();
  const bytes = 1_000_000_000;
  const fetch = { port: 5001, send: [`${bytes}\n`], limitMs: 100_000 };
  const carried = await bench.attempt({ address: ALLOWED, ...fetch });
  expect(carried.bytes).toBe(bytes);
  const straight = await bench.attemptDirectly({ address: ALLOWED, ...fetch });
  expect(straight.bytes).toBe(bytes);
  const rate = (ms: number) => Math.round(bytes / 1_000 / ms);
  process.stdout.write(`carried ${rate(carried.ms)} MB/s, straight ${rate(straight.ms)} MB/s\n`);
});
