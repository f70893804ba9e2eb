/**
 * `npm run bench:console`: what the web console of a running platform costs a browser: the sizes of its parts, the times of a
 * first visit on a processor that is slowed down four times, beside Cockpit where that is installed, ten thousand sandboxes, a
 * thousand changes a second, and a hundred megabytes in a terminal. `-- --write` puts the figures into docs/console.md.
 */

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { Sandbox } from "e2b";
import { type Browser, chromium, type Page } from "playwright-core";
import { buildConsolePage } from "../../../scripts/lib/programs/console-page.ts";
import { BOUNDS } from "../../../scripts/lib/programs/console-sizes.ts";
import { logInByLink } from "../../support/browser/by-link.ts";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { summarise } from "../numbers.ts";
import { startCockpit } from "./cockpit.ts";
import { beyond, intoPage, type Judged, type Timed, tablesOf } from "./figures.ts";
import { measureFlood } from "./flood.ts";
import { measureMany } from "./many.ts";
import { type Visit, type Visited, visit } from "./visit.ts";

const { values } = parseArgs({
  options: { write: { type: "boolean", default: false }, rounds: { type: "string", default: "15" } },
});
const rounds = Number(values.rounds);
/** Of the processor, as for a telephone of the middle class. */
const SLOWER = 4;
const root = new URL("../../../", import.meta.url).pathname;
const say = (line: string) => void process.stderr.write(`${line}\n`);

const platform = openPlatform();
const folder = await mkdtemp(join(tmpdir(), "svc-console-"));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const sandbox = await Sandbox.create({ timeoutMs: 3_600_000 });
try {
  const sizes = await buildConsolePage(root, folder);
  const files = await compressed(folder);
  const timed = [...(await ownScreens()), ...(await cockpits())];
  const judged = [...(await measureMany(browser, rounds)), ...(await flood(browser))];
  const text = tablesOf({ sizes, bounds: BOUNDS, files, timed, slower: SLOWER, judged });
  process.stdout.write(`${text}\n`);
  if (values.write) {
    const page = join(root, "docs/console.md");
    await writeFile(page, intoPage(await readFile(page, "utf8"), text));
  }
  const wrong = beyond(judged);
  for (const line of wrong) say(line);
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await sandbox.kill();
  await browser.close();
  await rm(folder, { recursive: true });
}

async function ownScreens(): Promise<readonly Timed[]> {
  const screens = [
    { name: "sandboxes", path: "", shows: sandbox.sandboxId },
    { name: "terminal of a sandbox", path: `sandboxes/${sandbox.sandboxId}/terminal`, shows: "connected, process" },
    { name: "metrics of a sandbox", path: `sandboxes/${sandbox.sandboxId}/metrics`, shows: "Processors: " },
  ];
  const timed: Timed[] = [];
  for (const { name, path, shows } of screens)
    timed.push(await timedVisits(name, { url: `${platform.apiUrl}/console/${path}`, shows, slower: SLOWER, logIn }));
  return timed;
}

/** None where it is not installed. */
async function cockpits(): Promise<readonly Timed[]> {
  const cockpit = await startCockpit();
  if (cockpit === undefined) {
    say("Cockpit is not installed, so nothing is beside the figures: scripts/host/test/cockpit installs it");
    return [];
  }
  try {
    return [
      await timedVisits("Cockpit's overview of a machine", { url: cockpit.url, shows: "Overview", slower: SLOWER }),
    ];
  } finally {
    cockpit.stop();
  }
}

async function timedVisits(name: string, visited: Visited): Promise<Timed> {
  const visits: Visit[] = [];
  for (let round = 0; round < rounds; round++) visits.push(await visit(browser, visited));
  const of = (pick: (each: Visit) => number) => summarise(visits.map(pick));
  say(`${name}: done`);
  return {
    name,
    bytes: of(({ bytes }) => bytes).p50,
    firstPaint: of(({ firstPaint }) => firstPaint),
    interactive: of(({ interactive }) => interactive),
    shown: of(({ shown }) => shown),
  };
}

async function flood(from: Browser): Promise<readonly Judged[]> {
  const context = await from.newContext();
  try {
    const page = await context.newPage();
    await logIn(page);
    await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/terminal`);
    await page.getByText(/^connected, process/).waitFor();
    return await measureFlood(page);
  } finally {
    await context.close();
  }
}

async function logIn(page: Page): Promise<void> {
  const link = await api(platform, "POST", "/console/link");
  await logInByLink(page, `${platform.apiUrl}${(link.json as { path: string }).path}`);
}

/** Bytes of every file of the page as browsers get it, the largest first, by names without their hash. */
async function compressed(built: string): Promise<Readonly<Record<string, number>>> {
  const names = (await readdir(built, { recursive: true })).filter((name) => name.endsWith(".br"));
  const sized = await Promise.all(
    names.map(async (name) => [basename(name, ".br"), (await stat(join(built, name))).size] as const),
  );
  const plain = sized.map(([name, bytes]) => [name.replace(/-[\w-]{8}(?=\.\w+$)/, ""), bytes] as const);
  return Object.fromEntries(plain.toSorted(([, a], [, b]) => b - a));
}
