/** What a check is, as data, and what it finds. Rendering is the caller's. */

import type { Evidence } from "../evidence/evidence.ts";

export const SECTIONS = [
  "kernel",
  "disks",
  "files",
  "clock",
  "Docker",
  "runc",
  "CRIU",
  "own disks",
  "firewall",
  "DNS",
  "ports",
  "certificates",
  "database",
  "blob store",
  "units",
  "programs",
  "nodes",
  "versions",
  "invariants",
  "orphans",
  "egress",
  "upgrade",
] as const;
type Section = (typeof SECTIONS)[number];

/** What `--fix` does, as data: `evidence/fixes.ts` applies it. Only what loses nothing and disturbs no sandbox is one. */
export type Fix =
  | { readonly does: "mode"; readonly path: string; readonly mode: number; readonly uid: number; readonly gid: number }
  | { readonly does: "forwarding" }
  | { readonly does: "module"; readonly name: string };

export interface Found {
  readonly evidence: string;
  /** In place of the check's. */
  readonly fix?: string;
  readonly mends?: Fix;
}

export interface Check {
  readonly id: string;
  readonly section: Section;
  /** `fails`: something does not work, or is not safe. `warns`: it works, and will not for ever. */
  readonly severity: "fails" | "warns";
  readonly problem: string;
  /** What was seen; nothing: the check passes. Undefined: it could not be seen. Pure. */
  readonly evidence: (evidence: Evidence) => readonly (Found | string)[] | undefined;
  /** What a person does. */
  readonly fix: string;
}

export interface Result {
  readonly id: string;
  readonly section: Section;
  readonly status: "ok" | "warning" | "failed" | "unknown";
  readonly problem: string;
  readonly evidence: string;
  readonly fix: string;
  readonly mends?: Fix;
}
