/**
 * `npm run matrix`: real programs, each in a sandbox of its own, are forked, paused, resumed from memory and from the disk, rewound and
 * booted from the disk, and asked from inside whether they are the same and go on. Prints a table, and ends with 1 when a row is not as
 * it should be.
 */

import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { openPlatform } from "../support/platform/platform.ts";
import { untilReady } from "../support/platform/programs.ts";
import { isAsWanted, pageOf, partOf, type Row, tableOf, waysOf } from "./judge.ts";
import { PROGRAMS } from "./programs.ts";
import { runProgram } from "./run.ts";

const USAGE = `npm run matrix -- [--only TEXT,…] [--part K/N] [--table FILE.md] [--list]
Runs against the platform of .svc/env, or of SVC_INSTANCE, with the templates of
./scripts/template programs, browser and desktop. --only takes rows whose names have one of the texts, --part every N-th.
--table writes the page of all rows: those of this run, and what the page had of the others.`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    part: { type: "string", default: "1/1" },
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
  const rows: Row[] = [];
  let wrong = 0;
  for (const program of chosen) {
    const row = await runProgram(platform, program, (way, outcome) => {
      const text = outcome.is === "works" ? `${outcome.ms} ms` : `${outcome.is}: ${outcome.reason}`;
      console.log(`${program.name}: ${way}: ${text}`);
    });
    rows.push(row);
    // After each one: a run of two hours may be cut.
    if (values.table !== undefined) await writePage(values.table, [row]);
    if (!waysOf(program).every((way) => isAsWanted(program, way, row.outcomes[way]))) wrong++;
  }
  const table = tableOf(rows);
  console.log(`\n${table}\n\n${rows.length - wrong} of ${rows.length} rows are as they should be`);
  return wrong === 0 ? 0 : 1;
}

async function writePage(file: string, rows: readonly Row[]): Promise<void> {
  const before = await readFile(file, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  });
  const names = PROGRAMS.map(({ name }) => name);
  await writeFile(file, pageOf(before, rows, names));
}
