/** Sandboxes of a fleet's tests: on a chosen node, in the blob store, and all of them away again. */

import { expect, vi } from "vitest";
import { containersOf } from "../platform/host-objects.ts";
import { api, asAdmin, type Platform } from "../platform/platform.ts";
import { until } from "../runner/until.ts";
import { inTurn, type Lasting } from "../sandbox/lasting.ts";
import { createCounting } from "./counting.ts";
import type { Fleet, FleetNode } from "./fleet.ts";
import { insist } from "./insist.ts";

/** Makes sandboxes on one node. */
export async function createOn(fleet: Fleet, node: FleetNode, count: number): Promise<Lasting[]> {
  return onlyOn(fleet, node, () => inTurn([...Array(count).keys()], () => createCounting(fleet, 0)));
}

/**
 * Makes sandboxes while no other node takes any.
 * @param gone nodes that do not answer
 */
export async function onlyOn<One extends { readonly id: string }>(
  fleet: Fleet,
  node: FleetNode,
  make: () => Promise<One[]>,
  gone: readonly FleetNode[] = [],
): Promise<One[]> {
  const others = fleet.nodes.filter((one) => one !== node && !gone.includes(one));
  for (const one of others) await setStatus(fleet, one, "draining");
  try {
    const made = await make();
    const elsewhere = async () => {
      const there = await idsOn(node);
      return made.map(({ id }) => id).filter((id) => !there.has(id));
    };
    // A container from the pool gets its sandbox's name a moment after the start.
    await expect.poll(elsewhere, { timeout: 120_000, message: `sandboxes outside ${node.id}` }).toEqual([]);
    return made;
  } finally {
    for (const one of others) await setStatus(fleet, one, "ready");
  }
}

async function setStatus(fleet: Fleet, { id }: FleetNode, status: "draining" | "ready"): Promise<void> {
  const platform = fleet.through(0);
  const reply = await api(platform, "POST", `/nodes/${id}`, { ...asAdmin(platform), body: { status } });
  expect(reply.status, reply.text).toBe(204);
}

/** Ids of the sandboxes that have a running container on a node. */
export async function idsOn(node: FleetNode): Promise<ReadonlySet<string>> {
  const running = (await containersOf(node.platform)).filter(({ state }) => state === "running");
  return new Set(running.map(({ name }) => name.slice("svc-".length)));
}

/** Waits until the blob store has a paused sandbox. */
export async function untilStored(fleet: Fleet, id: string): Promise<void> {
  const stored = async () => (await storageOf(fleet, id))?.inStore;
  await expect.poll(stored, { timeout: 300_000, interval: 500, message: `${id} in the blob store` }).toBe(true);
}

interface StoredItem {
  readonly inStore: boolean;
  /** On its way; `failure`: why the last try failed. */
  readonly upload: { readonly failure: string | null } | null;
}

/** What operators see of a paused sandbox's storage; undefined: nothing is stored of it. */
export async function storageOf(fleet: Fleet, id: string): Promise<StoredItem | undefined> {
  const platform = fleet.through(0);
  const { json } = await api(platform, "GET", "/admin/storage", asAdmin(platform));
  const { projects } = json as { projects: { largest: (StoredItem & { id: string })[] }[] };
  return projects.flatMap(({ largest }) => largest).find((item) => item.id === id);
}

/** Kills every sandbox of the project but some, and deletes all its snapshots. */
export async function removeAllBut(fleet: Fleet, kept: readonly Lasting[]): Promise<void> {
  const platform = fleet.through(0);
  const keep = new Set(kept.map(({ id }) => id));
  for (;;) {
    const all = await listed<{ sandboxID: string }>(platform, "/v2/sandboxes?limit=100");
    const others = all.filter(({ sandboxID }) => !keep.has(sandboxID));
    if (others.length === 0) break;
    await inTurn(others, ({ sandboxID }) => insist(fleet, { kind: "kill", id: sandboxID }, 0));
  }
  await inTurn(await listed<{ snapshotID: string }>(platform, "/snapshots?limit=100"), async ({ snapshotID }) => {
    // A sandbox of it that is being killed is not listed any more, and has it in use until it is gone.
    const remove = async () => {
      const { status, text } = await api(platform, "DELETE", `/templates/${encodeURIComponent(snapshotID)}`);
      if (status >= 300 && status !== 404)
        throw new Error(`the removal of ${snapshotID} was answered with ${status} ${text}`);
    };
    // Not `expect.poll`: hooks, too, remove what their tests have left.
    await vi.waitFor(remove, { timeout: 60_000, interval: 500 });
  });
}

/** What an orchestrator lists, asked again while it does not answer: it or its database may have been killed a moment ago. */
async function listed<One>(platform: Platform, path: string): Promise<readonly One[]> {
  const said: { list?: readonly One[] } = {};
  const ask = async () => {
    const reply = await api(platform, "GET", path).catch(() => undefined);
    if (reply?.status === 200) said.list = reply.json as readonly One[];
    return said.list !== undefined;
  };
  await until(ask, { what: `an answer to GET ${path}`, timeoutMs: 60_000, everyMs: 300 });
  return said.list ?? [];
}
