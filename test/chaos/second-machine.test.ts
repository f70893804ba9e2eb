/**
 * Another machine joins the platform with the two commands of docs/operating/machines.md. It is a second instance on this one,
 * with its own bridge, addresses, ports and state; the two speak TLS, as machines do.
 */

import { existsSync } from "node:fs";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, test } from "vitest";
import { containersOf } from "../support/platform/host-objects.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, asAdmin, checkout, openPlatform } from "../support/platform/platform.ts";
import { killHard, run, settingOf, untilReady } from "../support/platform/programs.ts";
import { createLasting, expectAllThere, inTurn, type Lasting, pauseAll } from "../support/sandbox/lasting.ts";

const platform = openPlatform();
/** Its number, which follows from the name, is none that the instance of the tests shares its addresses with. */
const INSTANCE = "peer";
/** Its API and key are those of the platform; its directories are its own. */
const second = {
  ...platform,
  instance: INSTANCE,
  paths: { run: `/run/svc-${INSTANCE}`, state: `/var/lib/svc-${INSTANCE}`, etc: `/etc/svc-${INSTANCE}` },
};
let all: Lasting[] = [];

const script = (name: string, args: readonly string[], { instance }: { readonly instance: string }) =>
  run(`${checkout}scripts/${name}`, args, { SVC_INSTANCE: instance });
const secondId = () => settingOf(second, "agent", "SVC_NODE_ID");

beforeAll(async () => {
  await untilReady(platform);
  const added = await script("node", ["add", "127.0.0.1"], platform);
  const [, token = "", url = ""] = /up --join (\S+) (\S+)/.exec(added) ?? [];
  expect(url).toMatch(/^https:/);
  const said = await script("up", ["--join", token, url], second);
  expect(said).toContain(`Node ${secondId()} of ${url} is ready`);
  // The first token opened the platform's port for nodes, for which its orchestrator was started again.
  await untilReady(platform);
}, 600_000);

afterAll(async () => {
  await inTurn(all, ({ id }) => Sandbox.kill(id));
  const id = existsSync(`${second.paths.etc}/agent.env`) ? secondId() : undefined;
  await script("down", ["--purge"], second);
  if (id !== undefined) await script("node", ["remove", id, "--force"], platform).catch(() => undefined);
}, 300_000);

/** The sandboxes that live on the second machine. */
async function onSecond(): Promise<Lasting[]> {
  const names = new Set((await containersOf(second)).map(({ name }) => name));
  return all.filter(({ id }) => names.has(`svc-${id}`));
}

test("sandboxes are spread over both machines, and pause and resume with their memory on either", async () => {
  // Placement takes the less promised of the two, so that eight do not all fall to one.
  all = await createLasting(8);
  expect((await onSecond()).length).toBeGreaterThan(0);
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
  expect((await containersOf(second)).map(({ name }) => name)).toContain(`svc-${copy.sandboxId}`);
  await copy.kill();
  await Sandbox.deleteSnapshot(snapshotId);
}, 120_000);

test("sandboxes outlive kill -9 of the second machine's agent, and of the orchestrator", async () => {
  await killHard(second, "agent");
  await expectAllThere(all, platform.apiKey);
  await killHard(platform, "orchestrator");
  await untilReady(platform);
  await expectAllThere(all, platform.apiKey);
  await pauseAll(await onSecond());
  await expectAllThere(all, platform.apiKey);
}, 240_000);

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
