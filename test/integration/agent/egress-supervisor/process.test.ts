/** The supervisor against a program that speaks as the egress process does. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { AskedValue, SandboxEgress } from "../../../../agent/egress/channel/messages.ts";
import { startEgressProcess } from "../../../../agent/egress-supervisor/process.ts";
import type { NetworkLogEntry } from "../../../../shared/agent-api/routes.ts";
import { type EgressPolicy, OPEN } from "../../../../shared/policy/egress-policy.ts";
import { createLog } from "../../../../shared/program/log.ts";

const program = new URL("../../../support/fakes/fake-egress.ts", import.meta.url).pathname;
const log = createLog({ component: "test", level: "silent" });
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const sandbox = (n: number, more: Partial<EgressPolicy> = {}) => ({
  address: `10.99.0.${n}`,
  executionId: `execution-${n}`,
  sandboxId: `sandbox${n}`,
  policy: { ...OPEN, ...more },
});

async function setup(
  sandboxes: readonly SandboxEgress[] = [],
  command = [process.execPath, "--import", "tsx", program],
  store: () => void = () => undefined,
) {
  const directory = await mkdtemp(join(tmpdir(), "svc-egress-"));
  undo.push(() => rm(directory, { recursive: true }));
  const file = join(directory, "heard");
  const used: (AskedValue & { count: number })[] = [];
  const decisions: { sandboxId: string; entries: readonly NetworkLogEntry[]; suppressed: number }[] = [];
  const egress = startEgressProcess(
    {
      command: () => Promise.resolve(command),
      environment: { FAKE_EGRESS_FILE: file, PATH: process.env["PATH"] ?? "" },
      begin: { gateway: "10.99.0.1", dnsUpstream: "", connectionsPerSandbox: 9, proxyAllowedRanges: [] },
      log,
      authority: () => Promise.resolve({ certificate: "c", key: "k" }),
      extraCertificates: () => Promise.resolve("more"),
    },
    {
      sandboxes,
      placeholders: {
        resolve: ({ executionId, placeholder, host }) =>
          placeholder === "broken"
            ? Promise.reject(new Error("no"))
            : Promise.resolve({ answer: { value: `${placeholder} of ${executionId} at ${host}` }, keepMs: 7 }),
        used: (asked, count) => void used.push({ ...asked, count }),
      },
      onDecisions(sandboxId, entries, suppressed) {
        store();
        decisions.push({ sandboxId, entries, suppressed });
      },
    },
  );
  undo.push(() => egress.stop());
  const heard = async () => {
    const text = await readFile(file, "utf8").catch(() => "");
    return text
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { is: string; process: number } & Record<string, unknown>);
  };
  return { egress, heard, decisions, used };
}

test("the egress process gets all running sandboxes at its start, then each new one", async () => {
  const { egress, heard, decisions } = await setup([sandbox(2)]);
  expect(egress.problem).toBeDefined();
  await egress.ready;
  expect(egress.problem).toBeUndefined();
  await egress.set(sandbox(3));
  egress.forget("10.99.0.2");
  expect(await egress.check("10.99.0.3", { hostname: "a.b", port: 80, protocol: "tcp" })).toEqual({
    verdict: "deny",
    rule: "fake",
    reason: "it is not real",
    dial: "address",
    addresses: ["203.0.113.9"],
  });
  expect(await heard()).toMatchObject([
    {
      is: "begin",
      gateway: "10.99.0.1",
      connectionsPerSandbox: 9,
      authority: { key: "k" },
      extraCertificates: "more",
      sandboxes: [sandbox(2)],
    },
    { is: "set", sandbox: sandbox(3) },
    { is: "forget", address: "10.99.0.2" },
    { is: "check", address: "10.99.0.3" },
  ]);
  expect(decisions).toMatchObject([{ sandboxId: "sandbox3", entries: [{ rule: "fake" }], suppressed: 2 }]);
});

test("decisions that cannot be stored, as on a full disk, do not end the agent", async () => {
  const full = () => {
    throw new Error("database or disk is full");
  };
  const { egress } = await setup([], undefined, full);
  await egress.ready;
  await egress.set(sandbox(2));
  expect(egress.problem).toBeUndefined();
});

test("the egress process gets an answer for each placeholder, also for one that has no value", async () => {
  const { egress, heard, used } = await setup();
  await egress.ready;
  await egress.set(sandbox(2, { rules: [{ host: "token", headers: {} }] }));
  await egress.set(sandbox(2, { rules: [{ host: "broken", headers: {} }] }));
  const answers = async () =>
    (await heard()).filter(({ is }) => is === "resolved").map(({ answer, keepMs }) => ({ answer, keepMs }));
  await expect.poll(answers).toEqual([
    { answer: { value: "token of execution-2 at host.test" }, keepMs: 7 },
    { answer: { problem: "the node could not ask for its value" }, keepMs: 0 },
  ]);
  expect(used).toContainEqual({ executionId: "execution-2", placeholder: "token", host: "host.test", count: 3 });
});

test("an egress process that dies is started again with all sandboxes; meanwhile readiness reports that it is down", async () => {
  const { egress, heard } = await setup([sandbox(2)]);
  await egress.ready;
  const [first] = await heard();
  process.kill(first?.process ?? 0, "SIGKILL");
  await expect.poll(() => egress.problem).toBeDefined();
  await expect(egress.check("10.99.0.2", { address: "1.2.3.4", port: 80, protocol: "tcp" })).rejects.toMatchObject({
    status: 503,
  });
  // The next "begin" message carries what changes while the process is down.
  await expect(egress.set(sandbox(3))).rejects.toMatchObject({ status: 503 });
  egress.forget("10.99.0.2");
  await expect.poll(() => egress.problem).toBeUndefined();
  expect((await heard()).at(-1)).toMatchObject({ is: "begin", sandboxes: [sandbox(3)] });
});

test("a policy change fails with an error when the egress process refuses it or dies of it", async () => {
  const { egress } = await setup();
  await egress.ready;
  await expect(egress.set(sandbox(2, { allowDomains: ["refuse"] }))).rejects.toThrow(/refused: no/);
  await expect(egress.set(sandbox(2, { allowDomains: ["die"] }))).rejects.toThrow(/ended with 3/);
});

test("an egress process that does not answer a policy change in time is killed and started again", async () => {
  const { egress, heard } = await setup();
  await egress.ready;
  await expect(egress.set(sandbox(2, { allowDomains: ["silent"] }))).rejects.toThrow(/ended with SIGKILL/);
  egress.forget("10.99.0.2");
  await expect.poll(async () => (await heard()).filter(({ is }) => is === "begin").length).toBe(2);
}, 90_000);

test("readiness reports an egress process that cannot be started, and the agent continues", async () => {
  const { egress } = await setup([sandbox(2)], ["/there/is/no/such/program"]);
  await expect.poll(() => egress.problem).toMatch(/cannot be started/);
});

test("the egress process ends when its supervisor ends", async () => {
  const { egress, heard } = await setup();
  await egress.ready;
  const [begun] = await heard();
  await egress.stop();
  expect(() => process.kill(begun?.process ?? 0, 0)).toThrow();
});
