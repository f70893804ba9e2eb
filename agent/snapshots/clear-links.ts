/**
 * A dump gives names to files that are open by a deleted one and have another hard link; a restore takes them away. Where
 * processes go on instead, or the disk boots without memory, they are taken away here.
 */

import type { Log } from "../../shared/program/log.ts";
import type { Criu, DumpedDisk } from "./criu.ts";
import type { SnapshotFiles } from "./store/files.ts";

export interface ClearLinksDeps {
  readonly files: Pick<SnapshotFiles, "links">;
  readonly criu: Pick<Criu, "removeLinks">;
  readonly log: Log;
}

/** Never throws: a name that stays is a file too many, and the same file as another one. */
export async function clearLinks(
  disk: DumpedDisk,
  snapshotId: string,
  { files, criu, log }: ClearLinksDeps,
): Promise<void> {
  try {
    const names = await files.links(snapshotId);
    if (names !== undefined) await criu.removeLinks(disk, names);
  } catch (error) {
    log.warn({ err: error, snapshotId, containerId: disk.id }, "names of open files not removed from the disk");
  }
}
