/** Deletes (or, in a dry run, lists) snapshots and images that no record references. */

import type { Containers } from "../../containers/containers.ts";
import type { ContainerStore } from "../../store/containers.ts";
import type { RemainsStore } from "../../store/remains.ts";
import type { SnapshotStore } from "../../store/snapshots.ts";
import type { SnapshotFiles } from "./files.ts";
import { type Garbage, planGarbage } from "./garbage-plan.ts";

const GRACE_MS = 600_000;

export interface GarbageDeps {
  readonly containers: Pick<Containers, "snapshotImages" | "removeImage">;
  readonly stores: {
    readonly snapshots: Pick<SnapshotStore, "all" | "remove">;
    readonly containers: Pick<ContainerStore, "all">;
    readonly remains: Pick<RemainsStore, "held">;
  };
  readonly files: Pick<SnapshotFiles, "list" | "changedAt" | "remove">;
  readonly now: () => number;
}

export async function findGarbage({ containers, stores, files, now }: GarbageDeps): Promise<Garbage> {
  const [images, { stored }] = await Promise.all([containers.snapshotImages(), files.list()]);
  const directories = await Promise.all(stored.map(async (id) => ({ id, changedAt: await files.changedAt(id) })));
  // Read after the lists, so that a snapshot that began meanwhile has its row by now.
  const rows = stores.snapshots.all();
  const owned = new Set(stores.containers.all().map(({ id }) => id));
  const { snapshots: held } = stores.remains.held();
  return planGarbage({ rows, held, containers: owned, directories, images, now: now(), graceMs: GRACE_MS });
}

/** An image that a container still needs stays until a later round. */
export async function removeGarbage(deps: GarbageDeps): Promise<void> {
  const { spent, directories, images } = await findGarbage(deps);
  for (const id of spent) {
    await deps.files.remove(id);
    deps.stores.snapshots.remove(id);
  }
  for (const id of directories) await deps.files.remove(id);
  for (const { id } of images) await deps.containers.removeImage(id);
}

export function describeGarbage({ spent, directories, images }: Garbage): string {
  const lines = [
    ...[...spent, ...directories].map((id) => `memory of ${id}`),
    ...images.map(({ id, snapshotId }) => `image of ${snapshotId}: ${id}`),
  ];
  return lines.length === 0 ? "nothing" : lines.join("\n");
}
