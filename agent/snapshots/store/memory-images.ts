/** Memory images in use: checks an image before or beside its restore, and knows which containers still lack pages. */

import { LRUCache } from "lru-cache";
import { AppError } from "../../../shared/http/errors.ts";
import type { Log } from "../../../shared/program/log.ts";
import type { Origins } from "../../host/origins.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import type { Criu, PageServer } from "../criu/criu.ts";
import type { SnapshotFiles } from "./files.ts";
import { checkOrigins, type Inside } from "./manifest.ts";
import { createVerifying } from "./verifying.ts";

export interface MemoryImagesDeps {
  readonly files: SnapshotFiles;
  readonly criu: Pick<Criu, "servePages" | "findPageServer">;
  readonly origins: () => Omit<Origins, "envd">;
  /** Larger ones are restored lazily. */
  readonly lazyBytes: () => number;
  /** Directory of a container's page server. */
  readonly work: (containerId: string) => string;
  readonly log: Log;
}

interface OpenImages {
  readonly directory: string;
  readonly lazy: boolean;
  /** Undefined when the dump has closed all connections, as earlier versions did. */
  readonly inside: Inside | undefined;
  /** Rejects when a file differs from what was written. */
  readonly verified: Promise<void>;
  /** Before a lazy restore: starts the page server of this container. */
  serve(containerId: string): Promise<void>;
  /** Called when the restore has succeeded. Calls `broken` if its pages can never be complete. */
  restored(broken: () => void): void;
  /** Called when the restore has failed. */
  abandon(): void;
}

export interface MemoryImages {
  /** @throws {AppError} snapshot_files_missing, snapshot_corrupt, snapshot_incompatible */
  open(snapshot: Pick<Snapshot, "id">, signal: AbortSignal): Promise<OpenImages>;
  /** Follows the page servers that an earlier agent process left running. */
  adopt(containerIds: readonly string[]): Promise<void>;
  /**
   * Resolves when the last page is in: before that the memory cannot be dumped.
   * @throws {AppError} snapshot_failed: the page server ended before that, and the missing pages read as zeros
   */
  complete(containerId: string): Promise<void>;
}

/** A page server of a killed sandbox ends before the last page, too. */
const MOST_INCOMPLETE = 1_000;

export function createMemoryImages({ files, criu, origins, lazyBytes, work, log }: MemoryImagesDeps): MemoryImages {
  const servers = new Map<string, Promise<boolean>>();
  /** Containers with missing pages. No caller reports the end of such a container, so the agent keeps the newest of them. */
  const incomplete = new LRUCache<string, true>({ max: MOST_INCOMPLETE });
  const verifying = createVerifying(files);

  const hold = (containerId: string, { done }: PageServer) => {
    servers.set(containerId, done);
    void done.then((whole) => {
      if (servers.get(containerId) !== done) return;
      servers.delete(containerId);
      if (!whole) incomplete.set(containerId, true);
    });
  };

  return {
    async open({ id }, signal) {
      const manifest = await files.manifest(id);
      checkOrigins(manifest, origins());
      const lazy = manifest.memoryBytes >= lazyBytes();
      const untouched = await files.untouched(id, manifest);
      signal.throwIfAborted();
      const verification = verifying.begin(id, manifest, untouched);
      const { done: verified } = verification;
      signal.addEventListener("abort", verification.abandon, { once: true });
      const checked = () => signal.removeEventListener("abort", verification.abandon);
      void verified.then(checked, checked);
      // Unchanged files are checked during the restore, which takes longer; until then the sandbox has no network and no caller.
      if (!untouched) await verified;
      const directory = files.images(id);
      let server: PageServer | undefined;
      let served: string | undefined;
      return {
        directory,
        lazy,
        inside: manifest.inside,
        verified,
        async serve(containerId) {
          server = await criu.servePages(directory, work(containerId));
          served = containerId;
          hold(containerId, server);
        },
        restored(broken) {
          void server?.done.then((whole) => {
            if (whole) return;
            log.error({ snapshotId: id }, "the page server ended before the last page, ending its sandbox");
            // The missing pages would read as zeros.
            broken();
          });
        },
        abandon() {
          verification.abandon();
          server?.stop();
          if (served === undefined) return;
          servers.delete(served);
          incomplete.delete(served);
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
      const whole = await servers.get(containerId);
      if (whole === false || incomplete.has(containerId))
        throw new AppError(
          "snapshot_failed",
          "the memory cannot be stored: the page server of the sandbox's restore ended before the last page",
        );
    },
  };
}
