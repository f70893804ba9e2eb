/** The reason why a sandbox's memory could not be restored, in words for its owner. Pure. */

const MAX_CHARACTERS = 200;
const MAX_NAME_CHARACTERS = 100;
/** Most characters of the log that patterns are tried on: a sandbox can influence it. */
const MAX_READ_CHARACTERS = 8_192;

interface CriuReason {
  readonly said: RegExp;
  readonly means: string;
  /** Finds the file's name in CRIU's text; the first match counts. */
  readonly names?: readonly RegExp[];
}

/** What svc-runc says of its own limit. */
const LATE = /did not end within its limit of (\d+) s/;

const LINKED = /-> (.+?): /;

/** CRIU's texts and their meaning. The first match counts. */
const REASONS: readonly CriuReason[] = [
  { said: /No space|Disk quota/, means: "the node has no space left" },
  {
    said: /ghost|Can't link /,
    means: "a file that was deleted or replaced while a process had it open cannot be made again",
    // In brackets is what svc-runc has found in the log.
    names: [/\((\/[^)]*)\)[^)]*$/, LINKED],
  },
  {
    said: /has bad (size|mode|mtime|build-id)/,
    means: "a file that a process has open is not as it was",
    names: [/File (.+) has bad /],
  },
  {
    said: /Can't open file|Can't mmap/,
    means: "a file that a process had open is not there any more",
    names: [/Can't open file (.+) on restore/],
  },
  {
    said: /Cannot allocate memory|Out of memory/,
    means: "there is no memory left for it, in the sandbox or on its node",
  },
  { said: /did not end in time|killed|ended in the middle/i, means: "it was ended before it was through" },
];

const DISK_ALONE = "start from the disk alone (memory: false)";

/** The reason of a restore that was ended at a limit, with the way out: what hung may have gone, and the disk starts without CRIU. */
export function restoreTookTooLong(seconds: number): string {
  return `the restore did not end within its limit of ${seconds} s; try again, or ${DISK_ALONE}`;
}

/** The reason with the way out: memory that cannot be restored now may never be, and the disk starts without it. */
export function whyNotRestored(error: unknown): string {
  const reason = explainRestore(error);
  return reason.endsWith(DISK_ALONE) ? reason : `${reason}; ${DISK_ALONE}`;
}

/** @param error of Docker, with the last complaint of `svc-runc` and its causes */
export function explainRestore(error: unknown): string {
  const found = /svc-runc: restore from \S+ failed: ([^\n]*)/.exec(texts(error).join("\n"))?.[1];
  if (found === undefined) return "Docker could not start it";
  const said = found.slice(0, MAX_READ_CHARACTERS);
  const limit = LATE.exec(said)?.[1];
  if (limit !== undefined) return restoreTookTooLong(Number(limit));
  const reason = REASONS.find((one) => one.said.test(said));
  if (reason === undefined) return `CRIU says: ${printable(said, MAX_CHARACTERS)}`;
  const name = reason.names?.map((pattern) => pattern.exec(said)?.[1]).find((one) => one !== undefined);
  return name === undefined ? reason.means : `${reason.means}: ${cleanName(name)}`;
}

/** The file's name in quotes that it cannot close. The sandbox chose the name. */
function cleanName(name: string): string {
  const own = name.replace(/\.cr\.[0-9a-f]+\.ghost$/, "").replace(/^\/*/, "/");
  return `"${printable(own, MAX_NAME_CHARACTERS).replaceAll(/["\\]/g, "?")}"`;
}

function printable(text: string, most: number): string {
  const shown = text.replaceAll(/[^\x20-\x7e]/g, "?");
  return shown.length > most ? `${shown.slice(0, most)}...` : shown;
}

function texts(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...texts(error.cause)] : [];
}
