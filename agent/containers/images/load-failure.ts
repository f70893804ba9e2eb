/**
 * Explains to the author of a build why Docker could not load an uploaded image: what is wrong with the archive, and the
 * way out. Docker's own message names paths of the host and types of its code, so it goes to the node's log only. Pure.
 */

import type { FailureReason } from "./pull-failure.ts";

const BUILD_AGAIN = "build the image again with another tool, or save it again";
const NAME_SHOWN = 100;

/** The first reason whose `when` matches Docker's message counts. */
const REASONS: readonly FailureReason[] = [
  {
    when: /no space left|disk quota exceeded/i,
    reason: "the node's disk is full",
    wayOut: "ask the node's operator to free disk space",
  },
  {
    when: /parsing time|Time\.UnmarshalJSON/,
    reason: "its configuration has a time that is not in RFC 3339 format",
    wayOut: 'set "created" to a time like 2026-01-31T12:00:00Z, or leave it out',
  },
  {
    when: /^json: |cannot unmarshal|invalid character|unexpected end of JSON/,
    reason: "its configuration has a field of another type than OCI images have",
    wayOut: BUILD_AGAIN,
  },
  {
    when: /layers length mismatch|invalid diffID|rootfs/i,
    reason: "its configuration does not name its layers",
    wayOut: BUILD_AGAIN,
  },
  {
    when: /cannot load \S+ image|does not match the specified platform/i,
    reason: "it is for another operating system or processor",
    wayOut: "upload an image for linux/amd64",
  },
  {
    when: /file name too long/,
    reason: "a layer has an entry whose name is longer than 255 bytes",
    wayOut: "give it a shorter name",
  },
  {
    when: /invalid tar header|unexpected EOF|not a tar|unhandled tar header|unknown compression/i,
    reason: "a layer is damaged, or has entries of a kind that no image has",
    wayOut: BUILD_AGAIN,
  },
  {
    when: /not a directory|is a directory|file exists/,
    reason: "a layer has a file where the same path is a directory, or the other way round",
    wayOut: BUILD_AGAIN,
  },
  {
    when: /\blink \S+ \S+: (?:no such file|operation not permitted|invalid cross-device)/,
    reason: "a layer has a hard link to a file that is not in the image",
    wayOut: BUILD_AGAIN,
  },
  {
    when: /Error processing tar file|failed to register layer|ApplyLayer/i,
    reason: "a layer has an entry that cannot be made: an attribute, a device or a path",
    wayOut: BUILD_AGAIN,
  },
];

const UNKNOWN: Pick<FailureReason, "reason" | "wayOut"> = {
  reason: "Docker refused it",
  wayOut: "the node's operator finds Docker's message in the log of the agent",
};

/** One sentence. `said` is Docker's text; nothing of it but the name of an entry of the archive is passed on. */
export function loadFailure(said: string): string {
  const { reason, wayOut } = REASONS.find(({ when }) => when.test(said)) ?? UNKNOWN;
  const entry = entryIn(said);
  return `the uploaded image cannot be loaded: ${reason}${entry === undefined ? "" : ` ('${entry}')`}; ${wayOut}`;
}

/** Docker has changed its root to the layer's before it unpacks: paths are those of the archive. */
function entryIn(said: string): string | undefined {
  const path = /^Error processing tar file\([^)]*\): (?:link \S+|open|mkdir|symlink \S+|lchown) (\/[^:]*): /.exec(
    said,
  )?.[1];
  if (path === undefined) return undefined;
  const shown = path.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "?").replaceAll("'", "?");
  return shown.length > NAME_SHOWN ? `${shown.slice(0, NAME_SHOWN)}...` : shown;
}
