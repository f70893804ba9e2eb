/**
 * An agent whose database is gone knows none of the containers, snapshots and templates of its node. It holds them for a time, in
 * which an operator can put the database back, before it deletes them. It ends the sandboxes that run, because the
 * database had the rules of their network. Their disks stay.
 */

import type { Log } from "../../shared/program/log.ts";
import { ownBuildImages } from "../builds/images/garbage.ts";
import type { Containers } from "../containers/containers.ts";
import type { SnapshotFiles } from "../snapshots/store/files.ts";
import { isNewDatabase, settleNewDatabase } from "../store/database/new-database.ts";
import type { Stores } from "../store/stores.ts";

export interface RemainsDeps {
  readonly containers: Pick<Containers, "list" | "disks" | "snapshotImages" | "buildImages" | "image">;
  readonly files: Pick<SnapshotFiles, "list">;
  readonly stores: Pick<Stores, "remains">;
  readonly nodeId: string;
  readonly databasePath: string;
  readonly keepMs: number;
  readonly now: () => number;
  readonly log: Log;
}

/** Call before anything of the node is removed. */
export async function holdRemains(deps: RemainsDeps): Promise<void> {
  const { containers, files, stores, databasePath, now, log } = deps;
  if (!isNewDatabase(databasePath)) return;
  const [found, disks, images, templates, { stored }] = await Promise.all([
    containers.list(),
    containers.disks(),
    containers.snapshotImages(),
    ownBuildImages(deps),
    files.list(),
  ]);
  const remains = {
    containers: new Set([...found.map(({ id }) => id), ...disks]),
    snapshots: new Set([...stored, ...images.map(({ snapshotId }) => snapshotId)]),
    images: new Set(templates),
  };
  if (Object.values(remains).some(({ size }) => size > 0)) {
    const until = now() + deps.keepMs;
    stores.remains.hold(remains, until);
    log.error(
      {
        databasePath,
        containers: remains.containers.size,
        snapshots: remains.snapshots.size,
        images: remains.images.size,
        until: new Date(until).toISOString(),
      },
      "the agent's database was gone, and this node has containers, snapshots or templates of an earlier one: they are held until then " +
        "(SVC_HOLD_HOURS). Stop the agent and put the database back to have them again",
    );
  }
  await settleNewDatabase(databasePath);
}

/** From then on the sweep and the garbage collection delete what no record names. */
export function releaseRemains({ stores, now, log }: Pick<RemainsDeps, "stores" | "now" | "log">): void {
  const { containers, snapshots, images } = stores.remains.release(now());
  if (containers.size + snapshots.size + images.size === 0) return;
  log.warn(
    { containers: [...containers], snapshots: [...snapshots], images: [...images] },
    "the holding time of what a lost database named has passed (SVC_HOLD_HOURS): it is deleted",
  );
}
