/** Reads what the tree of a sandbox's snapshots is made of. */

import type { SandboxEvent } from "../../../../shared/api/events.ts";
import { get, pages } from "../../base/client.ts";
import { lineageOf, type SandboxNode, type Snapshot, type Start } from "./lineage.ts";

export interface Lineage {
  readonly root: SandboxNode;
  /**
   * The snapshot that the sandbox was started from, the one that the sandbox of that snapshot was started from, and so on to a
   * template or a snapshot that is deleted.
   */
  readonly origins: readonly Snapshot[];
  readonly isWhole: boolean;
  /** Of the project. */
  readonly snapshots: readonly Snapshot[];
  /** To which snapshots the sandbox was put back, the newest first. */
  readonly rewinds: readonly { readonly buildID: string; readonly at: string }[];
}

/** Templates of snapshots whose sandboxes are looked up; a larger tree is shown in part. */
const MOST_TEMPLATES = 40;
/** Longest line of ancestors that is followed: one request for each. */
const MOST_ANCESTORS = 16;
const CREATED = "sandbox.lifecycle.created";
const REWOUND = "sandbox.lifecycle.rewound";

export async function loadLineage(id: string, signal: AbortSignal): Promise<Lineage> {
  const events = eventsOf(id);
  const [snapshots, own, latest] = await Promise.all([
    pages<Snapshot>("/snapshots", signal),
    get<SandboxEvent[]>(events, { limit: 1, orderAsc: true }, signal),
    get<SandboxEvent[]>(events, { limit: 100, orderAsc: false }, signal),
  ]);
  const starts = new Map<string, readonly Start[]>();
  let sandboxes = new Set([id]);
  let isWhole = true;
  // One generation after the other: sandboxes, their snapshots, the sandboxes that were started from these.
  while (sandboxes.size > 0) {
    const due = snapshots
      .filter(({ sourceSandboxID, templateID }) => sandboxes.has(sourceSandboxID ?? "") && !starts.has(templateID))
      .map(({ templateID }) => templateID);
    const templates = [...new Set(due)].slice(0, MOST_TEMPLATES - starts.size);
    isWhole &&= templates.length === new Set(due).size;
    sandboxes = new Set();
    for (const template of templates) {
      const found = await get<Start[]>("/events", { type: CREATED, template, limit: 100 }, signal);
      starts.set(template, found);
      for (const { sandboxId } of found) sandboxes.add(sandboxId);
    }
  }
  const root = lineageOf(id, snapshots, [...starts.values()].flat());
  const rewinds = latest
    .filter(({ type }) => type === REWOUND)
    .map(({ eventData, timestamp }) => ({
      buildID: String((eventData as { readonly snapshot_id?: unknown } | undefined)?.snapshot_id),
      at: timestamp,
    }));
  return {
    root,
    origins: await originsOf(own[0], snapshots, signal),
    isWhole,
    snapshots,
    rewinds,
  };
}

const eventsOf = (id: string) => `/events/sandboxes/${encodeURIComponent(id)}`;

async function originsOf(
  begun: SandboxEvent | undefined,
  snapshots: readonly Snapshot[],
  signal: AbortSignal,
): Promise<readonly Snapshot[]> {
  const origins: Snapshot[] = [];
  let first = begun;
  while (origins.length < MOST_ANCESTORS) {
    const build = first?.sandboxBuildId;
    const from = snapshots.find(({ buildID }) => buildID === build);
    if (from === undefined) break;
    origins.push(from);
    if (from.sourceSandboxID === undefined) break;
    [first] = await get<SandboxEvent[]>(eventsOf(from.sourceSandboxID), { limit: 1, orderAsc: true }, signal);
  }
  return origins;
}
