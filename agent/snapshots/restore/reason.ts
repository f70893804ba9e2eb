/** Why a sandbox's memory did not come back, in words for its owner. Pure. */

const MAX_CHARACTERS = 200;

/** What CRIU says → what it means. The first that matches counts. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/No space|Disk quota/, "the node has no space left"],
  [/Can't link .*ghost|ghost/, "a file that was deleted or replaced while a process had it open cannot be made again"],
  [/has bad (size|mode|mtime|build-id)/, "a file that a process has open is not as it was"],
  [/Can't open file|Can't mmap/, "a file that a process had open is not there any more"],
  [/did not end in time|killed|ended in the middle/i, "it was ended before it was through"],
];

/** @param error of the engine, which passes on what `svc-runc` complained of last, and what it was caused by */
export function explainRestore(error: unknown): string {
  const said = /svc-runc: restore from \S+ failed: ([^\n]*)/.exec(texts(error).join("\n"))?.[1];
  if (said === undefined) return "the engine could not start it";
  const known = REASONS.find(([pattern]) => pattern.test(said));
  return known?.[1] ?? `CRIU says: ${said.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, MAX_CHARACTERS)}`;
}

function texts(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...texts(error.cause)] : [];
}
