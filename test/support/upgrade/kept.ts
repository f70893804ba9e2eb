/** What a platform has before an upgrade, and looks at it afterwards. */

import { randomUUID } from "node:crypto";
import { Sandbox, Secret, Volume } from "e2b";
import { expect } from "vitest";
import { dropFrozen } from "../platform/frozen.ts";
import { api, asAdmin, type Platform } from "../platform/platform.ts";
import {
  createLasting,
  expectAllThere,
  grown,
  inTurn,
  type Lasting,
  pauseAll,
  startCounting,
} from "../sandbox/lasting.ts";
import { headerRule } from "../sandbox/secrets.ts";

const HOUR_MS = 3_600_000;
/** Of each kind. */
const SANDBOXES = 3;
const MOUNT = "/data";
const FILE = "kept.txt";
const TEXT = "written before the upgrade\n";

/** Sandboxes that go on with their memory; the first one mounts the volume. */
export interface Kept {
  readonly running: readonly Lasting[];
  /** The first one has only what is stored, the others may be frozen in memory too. */
  readonly paused: readonly Lasting[];
  readonly withoutMemory: Lasting;
  readonly killed: Lasting;
  readonly snapshot: { readonly id: string; readonly of: Lasting };
  readonly volume: Volume;
  readonly secret: string;
  readonly keys: { readonly valid: string; readonly revoked: string };
  /** When the counts of the running ones were seen last. */
  seenAt: number;
}

export async function makeKept(platform: Platform): Promise<Kept> {
  const name = `upgrade-${randomUUID().slice(0, 8)}`;
  const volume = await Volume.create(name);
  await volume.writeFile(`/${FILE}`, TEXT);
  await Secret.create(name, randomUUID());
  const running = [await createMounting(volume), ...(await createLasting(SANDBOXES - 1))];
  const others = await createLasting(SANDBOXES + 2);
  const [withoutMemory, killed, ...paused] = others;
  if (withoutMemory === undefined || killed === undefined) throw new Error("the sandboxes were not made");
  const [source] = running.slice(1);
  if (source === undefined) throw new Error("there is nothing to take a snapshot of");
  const of = { ...source };
  const { snapshotId } = await Sandbox.createSnapshot(source.id);
  await Sandbox.kill(killed.id);
  await Sandbox.pause(withoutMemory.id, { keepMemory: false });
  await pauseAll(paused);
  const [stored] = paused;
  if (stored !== undefined) await dropFrozen(platform, stored.id);
  const keys = await makeKeys(platform);
  const snapshot = { id: snapshotId, of };
  return { running, paused, withoutMemory, killed, snapshot, volume, secret: name, keys, seenAt: Date.now() };
}

async function createMounting(volume: Volume): Promise<Lasting> {
  const word = randomUUID();
  const options = { timeoutMs: HOUR_MS, metadata: { word }, volumeMounts: { [MOUNT]: volume } };
  const sandbox = await Sandbox.create(options);
  const one = { id: sandbox.sandboxId, word, pid: await startCounting(sandbox, word), count: 0 };
  await expect.poll(() => grown(sandbox, one)).toBe(true);
  return one;
}

async function makeKeys(platform: Platform): Promise<Kept["keys"]> {
  const admin = asAdmin(platform);
  const projects = (await api(platform, "GET", "/admin/projects", admin)).json as { teamID: string; name: string }[];
  const project = projects.find(({ name }) => name === "default");
  if (project === undefined) throw new Error("there is no project 'default'");
  const path = `/admin/teams/${project.teamID}/api-keys`;
  const make = async () => {
    const made = await api(platform, "POST", path, { ...admin, body: { name: "made before the upgrade" } });
    expect(made.status, made.text).toBe(201);
    return made.json as { key: string; id: string };
  };
  const [valid, revoked] = [await make(), await make()];
  expect((await api(platform, "DELETE", `${path}/${revoked.id}`, admin)).status).toBe(204);
  return { valid: valid.key, revoked: revoked.key };
}

/** The states in the list are those from before, and what was killed is not there. */
export async function expectListed(platform: Platform, kept: Kept): Promise<void> {
  const idsOf = async (state: string) => {
    const { json } = await api(platform, "GET", `/v2/sandboxes?state=${state}&limit=100`);
    return (json as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID).toSorted();
  };
  const ids = (some: readonly Lasting[]) => some.map(({ id }) => id).toSorted();
  expect(await idsOf("running")).toEqual(ids(kept.running));
  expect(await idsOf("paused")).toEqual(ids([...kept.paused, kept.withoutMemory]));
  expect((await api(platform, "GET", `/sandboxes/${kept.killed.id}`)).status).toBe(404);
}

/** The running ones have counted on all the while, and one still has its volume. */
export async function expectRunOn(platform: Platform, kept: Kept): Promise<void> {
  const { running } = kept;
  const before = running.map(({ count }) => count);
  const seconds = (Date.now() - kept.seenAt) / 1000;
  await expectAllThere(running, platform.apiKey);
  // Twice a second; a busy machine may lose half of it.
  for (const [index, { count }] of running.entries()) {
    expect(count - (before[index] ?? 0), `counts in ${Math.round(seconds)} s`).toBeGreaterThan(seconds);
  }
  kept.seenAt = Date.now();
  const [mounting] = running;
  const sandbox = await Sandbox.connect(mounting?.id ?? "", { timeoutMs: HOUR_MS });
  expect((await sandbox.commands.run(`cat ${MOUNT}/${FILE}`)).stdout).toBe(TEXT);
}

/** Paused sandboxes resume with their memory, or from their disk, and rest again. */
export async function expectResumed(platform: Platform, { paused, withoutMemory }: Kept): Promise<void> {
  await expectAllThere(paused, platform.apiKey);
  await pauseAll(paused);
  const sandbox = await Sandbox.connect(withoutMemory.id, { timeoutMs: HOUR_MS });
  expect(await sandbox.files.read("word.txt")).toBe(withoutMemory.word);
  await sandbox.pause({ keepMemory: false });
}

/** Snapshot, volume, secret and keys do what they did. */
export async function expectStored(platform: Platform, { snapshot, volume, secret, keys }: Kept): Promise<void> {
  const copy = await Sandbox.create(snapshot.id, { timeoutMs: HOUR_MS });
  const of = { ...snapshot.of };
  await expect.poll(() => grown(copy, of)).toBe(true);
  expect(await copy.files.read("word.txt")).toBe(snapshot.of.word);
  await copy.kill();
  const there = await Volume.connect(volume.volumeId);
  expect(await there.readFile(`/${FILE}`)).toBe(TEXT);
  // The start fails where the value of the secret cannot be opened.
  const network = headerRule("upgrade.test", { authorization: `Bearer \${e2b.secrets.${secret}}` });
  await (await Sandbox.create({ timeoutMs: HOUR_MS, network })).kill();
  const statuses = [keys.valid, keys.revoked].map(
    async (key) => (await api(platform, "GET", "/v2/sandboxes?limit=1", { key })).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 401]);
}

/** Removes all of it. */
export async function removeKept({ running, paused, withoutMemory, snapshot, volume, secret }: Kept): Promise<void> {
  await inTurn([...running, ...paused, withoutMemory], ({ id }) => Sandbox.kill(id));
  await Sandbox.deleteSnapshot(snapshot.id);
  await Volume.destroy(volume.volumeId);
  await Secret.destroy(secret);
}
