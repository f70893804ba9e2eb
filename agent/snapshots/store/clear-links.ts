/**
 * A dump gives names to files that are open by a deleted name and have another hard link; a restore removes the names.
 * Where the processes continue instead, or the disk boots without memory, this file removes them.
 */

import type { Log } from "../../../shared/program/log.ts";
import type { Criu, DumpedDisk } from "../criu/criu.ts";
import type { SnapshotFiles } from "./files.ts";

export interface ClearLinksDeps {
  readonly files: Pick<SnapshotFiles, "links">;
  readonly criu: Pick<Criu, "removeLinks">;
  readonly log: Log;
}

/** Never throws: a name that stays is one more link to the same file. */
export async function clearLinks(
  disk: DumpedDisk,
  snapshotId: string,
  { files, criu, log }: ClearLinksDeps,
): Promise<void> {
  try {
    const names = await files.links(snapshotId);
    if (names !== undefined) await criu.removeLinks(disk, names);
  } catch (error) {
    log.warn(
      { err: error, snapshotId, containerId: disk.id },
      "could not remove the link_remap names of open files from a disk",
    );
  }
}
