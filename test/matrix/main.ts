/**
 * `npm run matrix`: real programs, each in a sandbox of its own, are forked, paused, resumed from memory and from the disk, rewound and
 * booted from the disk, and asked from inside whether they are the same and go on. Prints a table, and ends with 1 when a row is not as
 * it should be.
 */

import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { openPlatform } from "../support/platform/platform.ts";
import { untilReady } from "../support/platform/programs.ts";
import { isAsWanted, type Row, tableOf, waysOf } from "./judge.ts";
import { PROGRAMS } from "./programs.ts";
import { runProgram } from "./run.ts";

const USAGE = `npm run matrix -- [--only TEXT,…] [--table FILE.md] [--list]
Runs against the platform of .svc/env, or of SVC_INSTANCE, with the templates of
./scripts/template programs, browser and desktop. --only takes rows whose names have one of the texts.`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    table: { type: "string" },
    list: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const texts = values.only?.toLowerCase().split(",");
const chosen = PROGRAMS.filter(({ name }) => texts?.some((text) => name.toLowerCase().includes(text)) ?? true);
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
    if (!waysOf(program).every((way) => isAsWanted(program, way, row.outcomes[way]))) wrong++;
  }
  const table = tableOf(rows);
  console.log(`\n${table}\n\n${rows.length - wrong} of ${rows.length} rows are as they should be`);
  if (values.table !== undefined) await writeFile(values.table, `${table}\n`);
  return wrong === 0 ? 0 : 1;
}
