/** Whether a snapshot is a state that a sandbox has had: of itself, or of a sandbox that it comes from, before it came from it. */

import type { Build } from "../../store/builds/record.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";
import type { Store } from "../../store/store.ts";

/** What a step towards the first ancestor needs of a record. */
type Descended = Pick<SandboxRecord, "id" | "buildId" | "forkedFrom">;

interface Origins {
  readonly sandboxes: { get(id: string): Promise<Descended | undefined> };
  readonly templates: Pick<Store["templates"], "build">;
}

/** Longest line of ancestors that is followed. */
const MOST_ANCESTORS = 64;

export async function isOwnState(
  { sandboxes, templates }: Origins,
  sandbox: Descended,
  snapshot: Pick<Build, "id" | "sourceSandboxId" | "createdAt">,
): Promise<boolean> {
  let current: Descended = sandbox;
  let until = Number.POSITIVE_INFINITY;
  for (let steps = 0; steps < MOST_ANCESTORS; steps++) {
    if (current.buildId === snapshot.id) return true;
    if (current.id === snapshot.sourceSandboxId) return snapshot.createdAt <= until;
    const parent = current.forkedFrom ?? (await startedFrom(templates, current.buildId));
    if (parent === undefined) return false;
    until = Math.min(until, parent.at);
    const next = await sandboxes.get(parent.id);
    // Its record was forgotten, and its snapshots still name it.
    if (next === undefined) return parent.id === snapshot.sourceSandboxId && snapshot.createdAt <= until;
    current = next;
  }
  return false;
}

/** The sandbox whose snapshot this is. Undefined: a template, or a snapshot that was deleted. */
async function startedFrom(templates: Origins["templates"], buildId: string) {
  const build = await templates.build(buildId);
  if (build?.kind !== "snapshot" || build.sourceSandboxId === undefined) return undefined;
  return { id: build.sourceSandboxId, at: build.createdAt };
}
