/** Memory images in use: checked before anything is made of them; which containers still lack pages of theirs. */

import { anySignal } from "../../../shared/program/any-signal.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { Criu, PageServer } from "../criu.ts";
import type { SnapshotFiles } from "./files.ts";
import { checkOrigins, type Origins } from "./manifest.ts";

export interface ImagesDeps {
  readonly files: SnapshotFiles;
  readonly criu: Pick<Criu, "servePages" | "findPageServer">;
  readonly origins: () => Omit<Origins, "envd">;
  /** Larger ones are restored lazily. */
  readonly lazyBytes: number;
  /** Where the page server of a container works. */
  readonly work: (containerId: string) => string;
  readonly log: Log;
}

interface OpenImages {
  readonly directory: string;
  readonly lazy: boolean;
  /** Rejects when a file is not what was written. */
  readonly verified: Promise<void>;
  /** Of a lazy one, before the restore: hands out its pages to this container. */
  serve(containerId: string): Promise<void>;
  /** The restore worked. `broken`: its pages will never be complete. */
  restored(broken: () => void): void;
  /** It did not. */
  abandon(): void;
}

export interface Images {
  /** @throws {AppError} snapshot_files_missing, snapshot_corrupt, snapshot_incompatible */
  open(snapshot: Pick<Snapshot, "id">, signal: AbortSignal): Promise<OpenImages>;
  /** Page servers that a former agent left running. */
  adopt(containerIds: readonly string[]): Promise<void>;
  /** The last page is in: until then its memory cannot be dumped. */
  complete(containerId: string): Promise<void>;
}

export function createImages({ files, criu, origins, lazyBytes, work, log }: ImagesDeps): Images {
  const servers = new Map<string, Promise<boolean>>();

  const hold = (containerId: string, { done }: PageServer) => {
    servers.set(containerId, done);
    void done.then(() => {
      if (servers.get(containerId) === done) servers.delete(containerId);
    });
  };

  return {
    async open({ id }, signal) {
      const manifest = await files.manifest(id);
      checkOrigins(manifest, origins());
      const lazy = manifest.memoryBytes >= lazyBytes;
      const over = new AbortController();
      const verified = files.verify(id, manifest, anySignal(signal, over.signal));
      verified.catch(() => undefined);
      // Files as they were left are checked beside the restore, which takes longer; nobody reaches the sandbox before.
      if (!(await files.untouched(id, manifest))) await verified;
      const directory = files.images(id);
      let server: PageServer | undefined;
      return {
        directory,
        lazy,
        verified,
        async serve(containerId) {
          server = await criu.servePages(directory, work(containerId));
          hold(containerId, server);
        },
        restored(broken) {
          void server?.done.then((whole) => {
            if (whole) return;
            log.error({ snapshotId: id }, "the page server ended too early");
            // Pages that it still had would read as zeros.
            broken();
          });
        },
        abandon() {
          over.abort();
          server?.stop();
        },
      };
    },
    async adopt(containerIds) {
      for (const id of containerIds) {
        const server = await criu.findPageServer(work(id));
        if (server !== undefined) hold(id, server);
      }
    },
    async complete(containerId) {
      await servers.get(containerId);
    },
  };
}
