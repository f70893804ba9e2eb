/**
 * `npm run matrix`: real programs, each in a sandbox of its own, are forked, paused, resumed from memory and from the disk, rewound and
 * booted from the disk, and asked from inside whether they are the same and go on. Prints a table, and ends with 1 when a row is not as
 * it should be.
 */

import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { openPlatform } from "../support/platform/platform.ts";
import { untilReady } from "../support/platform/programs.ts";
import { isAsWanted, type Outcome, pageOf, partOf, type Row, tableOf, type Way, waysOf } from "./judge.ts";
import type { Program } from "./program.ts";
import { PROGRAMS } from "./programs.ts";
import { runProgram } from "./run.ts";

const USAGE = `npm run matrix -- [--only TEXT,…] [--part K/N] [--at-once N] [--table FILE.md] [--list]
Runs against the platform of .svc/env, or of SVC_INSTANCE, with the templates of
./scripts/template programs, browser and desktop. --only takes rows whose names have one of the texts, --part every N-th. --at-once
runs several rows side by side: quicker, with longer times in the table.
--table writes the page of all rows: those of this run, and what the page had of the others.`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    part: { type: "string", default: "1/1" },
    "at-once": { type: "string", default: "1" },
    table: { type: "string" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const texts = values.only?.toLowerCase().split(",");
const named = PROGRAMS.filter(({ name }) => texts?.some((text) => name.toLowerCase().includes(text)) ?? true);
const chosen = partOf(named, values.part);
if (values.help || chosen.length === 0) {
  console.log(USAGE);
  process.exitCode = values.help ? 0 : 2;
} else if (values.list) {
  for (const { name, template } of chosen) console.log(`${name} (${template})`);
} else {
  process.exitCode = await matrix();
}

async function matrix(): Promise<number> {
  const platform = openPlatform("");
  await untilReady(platform);
  const rows = new Map<Program, Row>();
  const left = [...chosen];
  let written = Promise.resolve();
  const work = async () => {
    for (let program = left.shift(); program !== undefined; program = left.shift()) {
      const row = await runProgram(platform, program, said(program));
      rows.set(program, row);
      // After each one, because a run may be cut, and one at a time: the page has the rows that were there before.
      written = written.then(() => writePage([row]));
      await written;
    }
  };
  await Promise.all(Array.from({ length: Number(values["at-once"]) }, work));
  const done = chosen.flatMap((program) => rows.get(program) ?? []);
  const right = [...rows].filter(([program, { outcomes }]) =>
    waysOf(program).every((way) => isAsWanted(program, way, outcomes[way])),
  );
  console.log(`\n${tableOf(done)}\n\n${right.length} of ${chosen.length} rows are as they should be`);
  return right.length === chosen.length ? 0 : 1;
}

function said({ name }: Program): (way: Way, outcome: Outcome) => void {
  return (way, outcome) => {
    const text = outcome.is === "works" ? `${outcome.ms} ms` : `${outcome.is}: ${outcome.reason}`;
    console.log(`${name}: ${way}: ${text}`);
  };
}

async function writePage(rows: readonly Row[]): Promise<void> {
  const file = values.table;
  if (file === undefined) return;
  const before = await readFile(file, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  });
  const names = PROGRAMS.map(({ name }) => name);
  await writeFile(file, pageOf(before, rows, names));
}
