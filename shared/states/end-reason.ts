/** Why a sandbox ended: exactly one reason for each, written by the move that decides the end. Pure. */

import { type Static, Type } from "typebox";

export const EndReason = Type.Enum(
  [
    /** A kill request of its project. */
    "request",
    /** An operator killed all sandboxes of the project. */
    "admin",
    /** Its end time passed and `onTimeout` was `kill`. */
    "timeout",
    /** Its start or kill was cut short, or the client that created it left before the answer. */
    "abandoned",
    /** No node could start it; the caller of the create got the reason. */
    "create_failed",
    /** Its first process (init, which runs envd) ended by itself or was killed from inside. */
    "exited",
    /** The kernel killed its first process because the sandbox's memory was full. */
    "out_of_memory",
    /** The node's disk stayed short while the sandbox was held for growing most on it. */
    "disk_full",
    /** Another program removed its container on the node. */
    "removed",
    /** Its node answers and does not know it any more. */
    "lost",
    /** Its node stopped answering. */
    "node_lost",
    /** It stayed paused for longer than paused sandboxes are kept. */
    "expired",
  ],
  { description: "Why the sandbox ended" },
);
export type EndReason = Static<typeof EndReason>;

/** Most characters of `detail`: what the node or the platform adds to a reason. */
export const MAX_END_DETAIL = 256;

const SENTENCES: Readonly<Record<EndReason, string>> = {
  request: "a request killed it",
  admin: "an operator killed it",
  timeout: "its timeout passed",
  abandoned: "its start was given up",
  create_failed: "it could not be started",
  exited: "its first process exited",
  out_of_memory: "it ran out of memory",
  disk_full: "its node's disk stayed full, and it had grown most",
  removed: "its container was removed on its node",
  lost: "its node lost it",
  node_lost: "its node stopped answering",
  expired: "it was paused for longer than paused sandboxes are kept",
};

/** How a sandbox ended, as it is stored. */
export interface End {
  readonly reason: EndReason;
  /** Exit code of the sandbox's first process; absent when none was seen. */
  readonly exitCode?: number | undefined;
  /** More about the reason, in words of the platform, for example which process the kernel killed. */
  readonly detail?: string | undefined;
}

/** The end in one clause for people, without a full stop. */
export function describeEnd({ reason, exitCode, detail }: End): string {
  const code = exitCode === undefined ? "" : ` with exit code ${exitCode}`;
  return `${SENTENCES[reason]}${code}${detail === undefined ? "" : ` (${detail})`}`;
}

/** `detail` as it may be stored: one line without control characters, of bounded length. Undefined: nothing is left. */
export function cleanDetail(detail: string, most = MAX_END_DETAIL / 2): string | undefined {
  const line = detail.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  const characters = Array.from(line).slice(0, most);
  return characters.length === 0 ? undefined : characters.join("");
}
