/** Findings of the running agents, which know what a shell does not see, as evidence of checks. Pure. */

import type { NodeSeen } from "../evidence/evidence.ts";
import type { Check, Found } from "./check.ts";

/** @param prefixes of the ids of findings */
export function findingsOf(prefixes: readonly string[]): Check["evidence"] {
  return ({ nodes }) => nodes?.flatMap((node) => found(node, (id) => prefixes.some((prefix) => id.startsWith(prefix))));
}

/** Findings that no other check takes. */
export function otherFindings(taken: readonly string[]): Check["evidence"] {
  return ({ nodes }) => nodes?.flatMap((node) => found(node, (id) => !taken.some((prefix) => id.startsWith(prefix))));
}

function found({ id: node, findings }: NodeSeen, takes: (id: string) => boolean): readonly Found[] {
  return findings
    .filter(({ id }) => takes(id))
    .map(({ problem, evidence, wayOut }) => ({ evidence: `node ${node}: ${problem}: ${evidence}`, fix: wayOut }));
}
