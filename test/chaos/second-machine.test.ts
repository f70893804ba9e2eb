/**
 * Other machines join the platform with the commands of docs/operating/machines.md and edges.md: a node, and an edge. Each is an
 * instance on this machine, with its own ports and state, the node with its own bridge and addresses; they speak TLS, as
 * machines do. The orchestrator's own machine joins with the first of them.
 */

import { existsSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { containersOf } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, asAdmin, checkout, openPlatform } from "../support/platform/platform.ts";
import { killHard, run, service, settingOf, untilReady } from "../support/platform/programs.ts";
import { hostStep } from "../support/platform/settings.ts";
import { createLasting, expectAllThere, inTurn, type Lasting, pauseAll } from "../support/sandbox/lasting.ts";

const platform = openPlatform();
const INSTANCE = "peer";
/** Its API and key are those of the platform; its directories are its own. */
const second = {
  ...platform,
  instance: INSTANCE,
  paths: { run: `/run/svc-${INSTANCE}`, state: `/var/lib/svc-${INSTANCE}`, etc: `/etc/svc-${INSTANCE}` },
};
/** Runs an edge and nothing else. */
const EDGE = "edge";
let all: Lasting[] = [];

interface Drain {
  readonly state: string;
  readonly sandboxes: readonly { readonly state: string; readonly toNodeID: string | null }[];
}

const script = (name: string, args: readonly string[], { instance }: { readonly instance: string }) =>
  run(`${checkout}scripts/${name}`, args, { SVC_INSTANCE: instance });
const secondId = () => settingOf(second, "agent", "SVC_NODE_ID");
const ownId = () => settingOf(platform, "agent", "SVC_NODE_ID");

beforeAll(async () => {
  await untilReady(platform);
  const { token, url } = await joining("127.0.0.1");
  const said = await script("up", ["--join", token, url], second);
  expect(said).toContain(`Node ${secondId()} of ${url} is ready`);
  // The first token opened the platform's port for nodes, for which its orchestrator was started again.
  await untilReady(platform);
  const edge = await joining("--edge");
  const edgeSaid = await script("up", ["--edge-only", "--join", edge.token, edge.url], { instance: EDGE });
  expect(edgeSaid).toContain(`of ${url} is ready`);
}, 600_000);

afterAll(async () => {
  await inTurn(all, ({ id }) => Sandbox.kill(id));
  const id = existsSync(`${second.paths.etc}/agent.env`) ? secondId() : undefined;
  await script("down", ["--purge"], { instance: EDGE });
  await script("down", ["--purge"], second);
  if (id !== undefined) await script("node", ["remove", id, "--force"], platform).catch(() => undefined);
  await aloneAgain();
}, 600_000);

/** One machine again: other tests of the set give its orchestrator databases of other platforms, each with an authority of its own. */
async function aloneAgain(): Promise<void> {
  const { etc, state } = platform.paths;
  for (const file of [`${etc}/join-token`, `${etc}/fleet.env`, `${state}/agent/membership/membership.json`])
    rmSync(file, { force: true });
  await hostStep(platform, "settings", "machine");
  for (const program of ["orchestrator", "agent"] as const) await service(platform, "restart", program);
  await untilReady(platform);
}

/** What `node add` prints for the other machine. */
async function joining(how: string): Promise<{ token: string; url: string }> {
  const [, token = "", url = ""] = /--join (\S+) (\S+)/.exec(await script("node", ["add", how], platform)) ?? [];
  expect(url).toMatch(/^https:/);
  return { token, url };
}

/** The address at which the edge of its own takes sandboxes' traffic. */
const edgeUrl = () => {
  const port = /^SVC_EDGE_PORT=(\d+)$/m.exec(readFileSync(`/etc/svc-${EDGE}/edge.env`, "utf8"))?.[1];
  return `http://127.0.0.1:${port}`;
};

/** The sandboxes that live on the second machine. One that has come from another node has a longer name. */
async function onSecond(): Promise<Lasting[]> {
  const names = (await containersOf(second)).map(({ name }) => `${name}-`);
  return all.filter(({ id }) => names.some((name) => name.startsWith(`svc-${id}-`)));
}

test("sandboxes are spread over both machines, and pause and resume with their memory on either", async () => {
  // Placement takes the less promised of the two, so that eight do not all fall to one.
  all = await createLasting(8);
  // A container from the pool gets its sandbox's name a moment after the start.
  await expect.poll(async () => (await onSecond()).length, { timeout: 60_000 }).toBeGreaterThan(0);
  expect((await onSecond()).length).toBeLessThan(all.length);
  await pauseAll(all);
  await expectAllThere(all, platform.apiKey);
}, 240_000);

test("a snapshot that was made on the second machine starts there", async () => {
  const [there] = await onSecond();
  if (there === undefined) throw new Error("no sandbox is on the second machine");
  const { snapshotId } = await Sandbox.createSnapshot(there.id);
  const copy = await Sandbox.create(snapshotId, { timeoutMs: 120_000 });
  expect(await copy.files.read("word.txt")).toBe(there.word);
  const names = async () => (await containersOf(second)).map(({ name }) => name);
  await expect.poll(names, { timeout: 60_000 }).toContain(`svc-${copy.sandboxId}`);
  await copy.kill();
  await Sandbox.deleteSnapshot(snapshotId);
}, 240_000);

test("sandboxes outlive kill -9 of the second machine's agent, and of the orchestrator", async () => {
  await killHard(second, "agent");
  await expectAllThere(all, platform.apiKey);
  await killHard(platform, "orchestrator");
  await untilReady(platform);
  await expectAllThere(all, platform.apiKey);
  await pauseAll(await onSecond());
  await expectAllThere(all, platform.apiKey);
}, 240_000);

test("an edge of its own carries a command's output to its end while the orchestrator is killed, on either machine", async () => {
  const here = new Set((await onSecond()).map(({ id }) => id));
  const chosen = [all.find(({ id }) => here.has(id)), all.find(({ id }) => !here.has(id))];
  const boxes = await Promise.all(
    chosen.map((one) => Sandbox.connect(one?.id ?? "", { sandboxUrl: edgeUrl(), timeoutMs: 300_000 })),
  );
  const counted = boxes.map((box) => box.commands.run("for i in $(seq 1 60); do echo $i; sleep 0.1; done"));
  await delay(1_000);
  await killHard(platform, "orchestrator");
  const said = await Promise.all(counted);
  for (const { stdout } of said) expect(stdout.trim().split("\n")).toHaveLength(60);
  await untilReady(platform);
  // After a pause the edge hears where it is, from the orchestrator that has started again.
  await Promise.all(boxes.map((box) => box.pause()));
  const again = await Promise.all(
    boxes.map((box) => Sandbox.connect(box.sandboxId, { sandboxUrl: edgeUrl(), timeoutMs: 300_000 })),
  );
  for (const box of again) expect((await box.commands.run("echo again")).stdout).toBe("again\n");
}, 300_000);

/** Drains a node until nothing is left on it, and takes it into service again. */
async function drainOf(id: string): Promise<Drain["sandboxes"]> {
  const begun = await api(platform, "POST", `/nodes/${id}/drain`, { ...asAdmin(platform), body: {} });
  expect(begun.status, begun.text).toBe(202);
  const look = async () => (await api(platform, "GET", `/nodes/${id}/drain`, asAdmin(platform))).json as Drain;
  await expect.poll(async () => (await look()).state, { timeout: 240_000, interval: 500 }).toBe("done");
  const { sandboxes } = await look();
  expect(
    (await api(platform, "POST", `/nodes/${id}`, { ...asAdmin(platform), body: { status: "ready" } })).status,
  ).toBe(204);
  return sandboxes;
}

test("a drain moves running sandboxes with their memory to the orchestrator's own machine, and from it", async () => {
  const there = await onSecond();
  const moved = await drainOf(secondId());
  expect(moved).toHaveLength(there.length);
  for (const one of moved) expect(one).toMatchObject({ state: "moved", toNodeID: ownId() });
  // What a drain leaves on its node is removed behind it.
  await expect.poll(onSecond, { timeout: 60_000, interval: 500 }).toEqual([]);
  await expectAllThere(all, platform.apiKey);
  const back = await drainOf(ownId());
  expect(back).toHaveLength(all.length);
  for (const one of back) expect(one).toMatchObject({ state: "moved", toNodeID: secondId() });
  await expect.poll(onSecond, { timeout: 60_000, interval: 500 }).toHaveLength(all.length);
  await expectAllThere(all, platform.apiKey);
}, 600_000);

test("the platform removes an empty machine, and the machine's agent says so and does not come back", async () => {
  const id = secondId();
  const there = await onSecond();
  const refused = await script("node", ["remove", id], platform).catch((error: Error) => error.message);
  expect(refused).toContain(`node '${id}' has ${there.length} running sandbox`);
  await inTurn(there, (one) => Sandbox.kill(one.id));
  expect(JSON.parse(await script("node", ["remove", id], platform))).toMatchObject({
    sandboxes: 0,
    pausedSandboxes: 0,
  });
  const { json } = await api(platform, "GET", "/nodes", asAdmin(platform));
  expect((json as { id: string }[]).map((node) => node.id)).not.toContain(id);
  await expect(script("up", [], second)).rejects.toThrow(`node '${id}' is not on this platform any more`);
  await inTurn(all, (one) => Sandbox.kill(one.id));
  await expectNoProblems(platform);
}, 240_000);
