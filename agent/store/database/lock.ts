/** One agent per state directory: an exclusive lock on a file, which the kernel releases when the process dies. */

import Database from "better-sqlite3";

/** @throws when another agent holds the lock */
export function lockState(path: string): { release(): void } {
  const lock = new Database(path, { timeout: 0 });
  try {
    lock.pragma("locking_mode = EXCLUSIVE");
    lock.exec("begin exclusive");
  } catch (cause) {
    lock.close();
    throw new Error(`another agent uses ${path}`, { cause });
  }
  return { release: () => void lock.close() };
}
