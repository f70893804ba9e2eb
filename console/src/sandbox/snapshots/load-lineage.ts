/** Reads what the tree of a sandbox's snapshots is made of. */

import type { SandboxEvent } from "../../../../shared/api/events.ts";
import { get, pages } from "../../base/client.ts";
import { lineageOf, type SandboxNode, type Snapshot, type Start } from "./lineage.ts";

export interface Lineage {
  readonly root: SandboxNode;
  /** The snapshot that the sandbox itself was started from; undefined: a template, or a snapshot that is deleted. */
  readonly from: Snapshot | undefined;
  readonly isWhole: boolean;
  /** Of the project. */
  readonly snapshots: readonly Snapshot[];
  /** To which snapshots the sandbox was put back, the newest first. */
  readonly rewinds: readonly { readonly buildID: string; readonly at: string }[];
}

/** Templates of snapshots whose sandboxes are looked up; a larger tree is shown in part. */
const MOST_TEMPLATES = 40;
const CREATED = "sandbox.lifecycle.created";
const REWOUND = "sandbox.lifecycle.rewound";

export async function loadLineage(id: string, signal: AbortSignal): Promise<Lineage> {
  const events = `/events/sandboxes/${encodeURIComponent(id)}`;
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
    from: snapshots.find(({ buildID }) => buildID === own[0]?.sandboxBuildId),
    isWhole,
    snapshots,
    rewinds,
  };
}
