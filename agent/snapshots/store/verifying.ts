/**
 * Checks of memory images that copies share: ten forks of one checkpoint read and hash its memory once. A check counts for
 * every restore that begins while it runs or soon after, as long as the file system reports no change.
 */

import type { SnapshotFiles } from "./files.ts";
import type { Manifest } from "./manifest.ts";

/** Copies of one fork begin within this time. */
const COUNTS_MS = 10_000;

interface Check {
  readonly done: Promise<void>;
  readonly over: AbortController;
  /** Restores that need its outcome. */
  users: number;
  endedAt: number | undefined;
}

interface Verification {
  /** Rejects when a file differs from what was written. */
  readonly done: Promise<void>;
  /** The caller gives up the outcome. The check ends when no caller waits for it. */
  readonly abandon: () => void;
}

export interface Verifying {
  /** @param untouched whether the file system reports that no file changed since it was written */
  readonly begin: (id: string, manifest: Manifest, untouched: boolean) => Verification;
}

export function createVerifying(
  { verify }: Pick<SnapshotFiles, "verify">,
  now: () => number = () => performance.now(),
): Verifying {
  const checks = new Map<string, Check>();

  const start = (id: string, manifest: Manifest): Check => {
    const over = new AbortController();
    const done = verify(id, manifest, over.signal);
    const check: Check = { done, over, users: 0, endedAt: undefined };
    const forget = () => void (checks.get(id) === check && checks.delete(id));
    done.then(() => {
      check.endedAt = now();
      setTimeout(forget, COUNTS_MS).unref();
    }, forget);
    return check;
  };

  return {
    begin(id, manifest, untouched) {
      const known = checks.get(id);
      const counts = untouched && known?.over.signal.aborted === false && now() - (known.endedAt ?? now()) < COUNTS_MS;
      const check = counts ? known : start(id, manifest);
      checks.set(id, check);
      check.users++;
      let needed = true;
      return {
        done: check.done,
        abandon() {
          if (!needed) return;
          needed = false;
          check.users--;
          if (check.users === 0 && check.endedAt === undefined) check.over.abort();
        },
      };
    },
  };
}
