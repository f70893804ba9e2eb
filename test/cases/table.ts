/**
 * The table of cases from the field: inputs of programs, clients and Dockerfiles that somebody met, what they got, and what
 * they get now. Cases of one kind stand together, and those that were found by looking for siblings of a reported one are
 * marked. A case holds when all its tests passed.
 */

import { type Proof, rowsOf } from "../support/runner/outcomes.ts";
import { builds } from "./rows/builds.ts";
import { cells } from "./rows/cells.ts";
import { clients } from "./rows/clients.ts";
import { command } from "./rows/command.ts";
import { egress } from "./rows/egress.ts";
import { inside } from "./rows/inside.ts";
import { into } from "./rows/into.ts";

export interface Case extends Proof {
  readonly input: string;
  /** What the platform answered when the case was met. */
  readonly before: string;
  /** What its tests require. */
  readonly now: string;
  /** Nobody reported it: it was tried because it is of the same kind as a reported one. */
  readonly isSibling: boolean;
}

const SIBLING = "sibling: ";

/** Columns: the input, behind `sibling: ` where nobody reported it | before => now | the tests' file | a part of the tests' names. */
const TABLE: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  clients,
  "into a sandbox": into,
  "out of a sandbox": egress,
  "template builds": builds,
  inside,
  "cells of the code interpreter": cells,
  "the command": command,
};

/** All cases of the table, by section and kind, such as `inside: names that are not UTF-8`. */
export const cases: Readonly<Record<string, readonly Case[]>> = Object.fromEntries(
  Object.entries(TABLE).flatMap(([section, kinds]) =>
    Object.entries(kinds).map(([kind, text]) => [`${section}: ${kind}`, rowsOf(text).map(caseOf)]),
  ),
);

function caseOf({ columns: [input, answers], ...proof }: ReturnType<typeof rowsOf>[number]): Case {
  const [before, now, ...more] = answers.split(" => ");
  if (before === undefined || now === undefined || more.length > 0)
    throw new Error(`the answers of a case are not "before => now": ${answers}`);
  const isSibling = input.startsWith(SIBLING);
  return { input: isSibling ? input.slice(SIBLING.length) : input, before, now, isSibling, ...proof };
}
