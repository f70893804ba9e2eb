/** Which sandboxes depend on an object: they are shown before somebody deletes it. */

import type { SandboxEvent } from "../../../shared/api/events.ts";
import type { ListedSandbox } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { get, pages } from "../base/client.ts";
import type { Snapshot } from "../sandbox/snapshots/lineage.ts";

export type Dependent = Pick<ListedSandbox, "sandboxID" | "state" | "startedAt">;

/** Rows of one request. */
const ROWS = 500;
/** Sandboxes whose first event is looked up, each by a request; the others are shown without. */
const MOST_LOOKS = 50;
const AT_ONCE = 5;

/** The sandboxes that run or are paused from this template. @throws {Failed} */
export async function startedFromTemplate(templateID: string, signal: AbortSignal): Promise<readonly Dependent[]> {
  const rows = await pages<Dependent & { readonly templateID: string }>("/rows", signal, { limit: ROWS });
  return rows.filter((row) => row.templateID === templateID);
}

/**
 * Those that run or are paused from this snapshot. Snapshots of one sandbox have one template: the event of a sandbox's creation
 * tells from which of them it was started. @throws {Failed}
 */
export async function startedFromSnapshot(
  { templateID, buildID }: Pick<Snapshot, "templateID" | "buildID">,
  signal: AbortSignal,
): Promise<readonly Dependent[]> {
  const rows = await startedFromTemplate(templateID, signal);
  const kept: Dependent[] = rows.slice(MOST_LOOKS);
  for (let from = 0; from < Math.min(rows.length, MOST_LOOKS); from += AT_ONCE) {
    const some = rows.slice(from, Math.min(from + AT_ONCE, MOST_LOOKS));
    const builds = await Promise.all(some.map(({ sandboxID }) => buildOf(sandboxID, signal)));
    kept.push(...some.filter((_row, index) => builds[index] === undefined || builds[index] === buildID));
  }
  return kept;
}

/** Those that mount this volume. @throws {Failed} */
export async function mounting(volume: string, signal: AbortSignal): Promise<readonly Dependent[]> {
  const all = await pages<ListedSandbox>("/v2/sandboxes", signal);
  return all.filter(({ volumeMounts = [] }) => volumeMounts.some(({ name }) => name === volume));
}

/** Undefined: the platform keeps its first event no more. */
async function buildOf(id: string, signal: AbortSignal): Promise<string | undefined> {
  const path = `/events/sandboxes/${encodeURIComponent(id)}`;
  const [first] = await get<SandboxEvent[]>(path, { limit: 1, orderAsc: true }, signal);
  return first?.type === "sandbox.lifecycle.created" ? first.sandboxBuildId : undefined;
}
