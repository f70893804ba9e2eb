/** Reads from a failed write or read why the disk or the database cannot serve: full, broken, read-only, out of memory. Pure. */

export interface StorageFailure {
  readonly code: "no_space" | "unavailable";
  readonly message: string;
}

export function fullDisk(of: "service" | "database"): StorageFailure {
  return { code: "no_space", message: `the disk of the ${of} is full: its operator must make room` };
}

const down = (why: string): StorageFailure => ({
  code: "unavailable",
  message: `the database cannot be used now: ${why}; its operator finds more in the orchestrator's log`,
});

/** Codes of the operating system, of SQLite (also the longer ones that begin with them), and of PostgreSQL. */
const FAILURES: readonly (readonly [RegExp, StorageFailure])[] = [
  [/^(ENOSPC|EDQUOT)$/, fullDisk("service")],
  // The index of the log beside the database could not be made longer.
  [/^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|53100)$/, fullDisk("database")],
  [/^SQLITE_IOERR_NOMEM$/, down("it is out of memory")],
  [/^SQLITE_IOERR/, down("its disk reports an input/output error")],
  [/^(SQLITE_NOMEM|53200)/, down("it is out of memory")],
  [/^(SQLITE_READONLY|25006$)/, down("it is read-only")],
  [/^(SQLITE_CORRUPT|SQLITE_NOTADB|XX001$|XX002$)/, down("it is damaged")],
  [/^SQLITE_CANTOPEN/, down("its file cannot be opened")],
  [/^(58030|EIO)$/, down("its disk reports an input/output error")],
];

/** Undefined: a failure of another kind. Looks at the causes too. */
export function storageFailure(reason: unknown): StorageFailure | undefined {
  for (let error = reason, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    if (!("code" in error) || typeof error.code !== "string") continue;
    const { code } = error;
    const found = FAILURES.find(([pattern]) => pattern.test(code));
    if (found !== undefined) return found[1];
  }
  return undefined;
}
