/** How far drains are, from their rows and those of the sandboxes on their nodes. */

import type { DrainProgress } from "../../metrics/node-gauges.ts";
import type { Store } from "../../store/store.ts";
import { type DrainSides, drainState } from "./drain-plan.ts";

type Sides = Pick<DrainSides, "here"> & { readonly moves: Awaited<ReturnType<Store["drains"]["moves"]>> };
type SidesStore = Pick<Store, "sandboxes" | "pausedSandboxes" | "drains">;

/** What the records have on the node, and what its drain has come to. */
export async function sidesOf(nodeId: string, store: SidesStore): Promise<Sides> {
  const live = await store.sandboxes.onNode(nodeId);
  const paused = await store.pausedSandboxes.pausedOn(nodeId);
  const here = [...live, ...paused.map(({ id }) => ({ id, state: "paused" as const }))];
  return { here, moves: await store.drains.moves(nodeId) };
}

/** Of the drains that no operator has ended. */
export async function drainProgress(store: SidesStore, now: () => number): Promise<DrainProgress[]> {
  const progress: DrainProgress[] = [];
  for (const drain of await store.drains.unfinished()) {
    const { nodeId, endedAt } = drain;
    if (endedAt !== undefined) continue;
    const { here, moves } = await sidesOf(nodeId, store);
    const stored = new Set(moves.filter(({ state }) => state === "stored").map(({ sandboxId }) => sandboxId));
    const left = here.filter(({ id, state }) => state !== "paused" || !stored.has(id)).length;
    progress.push({ nodeId, state: drainState({ drain, here, moves, now: now() }), left });
  }
  return progress;
}
