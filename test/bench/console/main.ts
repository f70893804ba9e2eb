/**
 * `npm run bench:console`: what the web console of a running platform costs a browser: the sizes of its parts, and the times of a
 * first visit on a processor that is slowed down four times. `-- --write` puts the figures into docs/console.md.
 */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Sandbox } from "e2b";
import { chromium } from "playwright-core";
import { buildConsolePage } from "../../../scripts/lib/programs/console-page.ts";
import { BOUNDS } from "../../../scripts/lib/programs/console-sizes.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { summarise } from "../numbers.ts";
import { intoPage, type Timed, tablesOf } from "./figures.ts";
import { type Visit, visit } from "./visit.ts";

const { values } = parseArgs({
  options: { write: { type: "boolean", default: false }, rounds: { type: "string", default: "15" } },
});
const rounds = Number(values.rounds);
/** Of the processor, as for a telephone of the middle class. */
const SLOWER = 4;
const root = new URL("../../../", import.meta.url).pathname;

const platform = openPlatform();
const folder = await mkdtemp(join(tmpdir(), "svc-console-"));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const sandbox = await Sandbox.create({ timeoutMs: 1_200_000 });
try {
  const sizes = await buildConsolePage(root, folder);
  const timed: Timed[] = [];
  const screens = [
    { name: "sandboxes", path: "", shows: sandbox.sandboxId },
    { name: "terminal of a sandbox", path: `sandboxes/${sandbox.sandboxId}/terminal`, shows: "connected, process" },
    { name: "metrics of a sandbox", path: `sandboxes/${sandbox.sandboxId}/metrics`, shows: "Processors: " },
  ];
  for (const { name, ...screen } of screens) {
    const visits: Visit[] = [];
    for (let round = 0; round < rounds; round++)
      visits.push(await visit(browser, platform, { ...screen, slower: SLOWER }));
    const of = (pick: (each: Visit) => number) => summarise(visits.map(pick));
    timed.push({
      name,
      bytes: of(({ bytes }) => bytes).p50,
      firstPaint: of(({ firstPaint }) => firstPaint),
      interactive: of(({ interactive }) => interactive),
      shown: of(({ shown }) => shown),
    });
    process.stderr.write(`${name}: done\n`);
  }
  const text = tablesOf({ sizes, bounds: BOUNDS, timed, slower: SLOWER });
  process.stdout.write(`${text}\n`);
  if (values.write) {
    const page = join(root, "docs/console.md");
    await writeFile(page, intoPage(await readFile(page, "utf8"), text));
  }
} finally {
  await sandbox.kill();
  await browser.close();
  await rm(folder, { recursive: true });
}
