/**
 * What desktops and browsers take in one run, beside what they took before they had templates: creates, pauses, resumes, forks, and the
 * memory of ten browsers. Judges no time, because a busy machine is slow: it prints a table. The parts of each pause are in the
 * orchestrator's log ("sandbox paused").
 */

import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Sandbox as Desktop } from "@e2b/desktop";
import { Sandbox } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { api, openPlatform } from "../support/platform/platform.ts";
import { untilReady } from "../support/platform/programs.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const LIVES = { timeoutMs: 1_800_000, requestTimeoutMs: 600_000 };
/** Fifteen rounds, each of two pauses, two resumes and a fork. */
const SLOW = { timeout: 1_800_000 };
const ROUNDS = 5;
const COPIES = 10;
/** A page with a picture's worth of memory, that counts. */
const PAGE =
  "data:text/html,<title>0</title><canvas width=1200 height=800></canvas><script>let n=0;setInterval(()=>{document.title=++n},100)</script>";

/** What took how long before, and what it should take; empty: nothing was measured, or nothing was said. */
const BEFORE: Readonly<Record<string, readonly [string, string]>> = {
  "desktop: create": ["5 400", "1 500"],
  "desktop: pause": ["5 700", "1 500"],
  "desktop: frozen resume": ["29", ""],
  "desktop: fork": ["6 700", ""],
  "desktop with Chromium: pause": ["refused", "1 500"],
  "desktop with Chromium: fork": ["refused", ""],
  "Firefox, headless: pause": ["7 700", "1 500"],
  "Firefox, headless: fork": ["6 400", ""],
  "Chromium, headless: pause": ["refused", ""],
  "Chromium, headless: fork": ["refused", ""],
};

beforeAll(() => untilReady(platform), 90_000);

test("desktops and browsers are created, paused, resumed and forked, and their figures are printed", SLOW, async () => {
  const figures = new Map<string, number[]>();
  const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await work();
    const all = figures.get(name) ?? [];
    figures.set(name, [...all, performance.now() - began]);
    return result;
  };

  // The first one of a template makes what later ones find.
  await (await Desktop.create(LIVES)).kill();
  for (let round = 0; round < ROUNDS; round++)
    await (await timed("desktop: create", () => Desktop.create(LIVES))).kill();

  for (const [name, open] of Object.entries(OPEN)) {
    let sandbox = await open();
    const connected = () => Sandbox.connect(sandbox.sandboxId, LIVES);
    // Comes to rest: what is measured is no start of a program.
    await delay(10_000);
    try {
      for (let round = 0; round < ROUNDS; round++) {
        await timed(`${name}: pause`, () => pause(sandbox, {}));
        sandbox = await timed(`${name}: frozen resume`, connected);
        await delay(1_000);
        await timed(`${name}: pause, not kept frozen`, () => pause(sandbox, { frozen: false }));
        sandbox = await timed(`${name}: resume from the disk`, connected);
        await delay(1_000);
        const [copy] = await timed(`${name}: fork`, () => sandbox.fork({ count: 1, ...LIVES }));
        if (!(copy instanceof Sandbox)) throw copy ?? new Error("the platform made no copy");
        await copy.kill();
      }
    } finally {
      await sandbox.kill();
    }
  }
  console.log(table(figures));
  expect(figures.size).toBe(1 + 5 * Object.keys(OPEN).length);
});

test("ten copies of a browser need no more memory than ten that were started", async () => {
  const source = await chromium();
  await delay(10_000);
  const ofCopies = await grown(() => source.fork({ count: COPIES, ...LIVES }));
  const ofStarted = await grown(async () => {
    const started: Sandbox[] = [];
    for (let n = 0; n < COPIES; n++) started.push(await chromium());
    return started;
  });
  console.log(
    `memory of the machine: ${COPIES} forked browsers ${Math.round(ofCopies)} MB, ${COPIES} started ones ${Math.round(ofStarted)} MB`,
  );
  // What else the machine does is in both figures.
  expect(ofCopies).toBeLessThan(ofStarted * 1.2);
});

const OPEN = {
  desktop: async () => {
    const { sandboxId } = killedAfterwards(await Desktop.create(LIVES));
    return Sandbox.connect(sandboxId, LIVES);
  },
  "desktop with Chromium": async () => {
    const desktop = killedAfterwards(await Desktop.create(LIVES));
    await desktop.files.write("page.html", "<title>a page</title><h1>hello</h1>");
    await desktop.open("/home/user/page.html");
    const shown = async () =>
      (await desktop.commands.run("xdotool search --onlyvisible --name 'a page' || true")).stdout;
    await expect.poll(shown, { timeout: 120_000 }).not.toBe("");
    return Sandbox.connect(desktop.sandboxId, LIVES);
  },
  "Firefox, headless": async () => {
    const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
    // The template's own browser is not measured here.
    await sandbox.commands.run("pkill -f '[/]opt/browser/start'; pkill chromium; mkdir -p profile site");
    await sandbox.files.write("site/index.html", "<title>a page</title><h1>hello</h1>");
    const background = { background: true, timeoutMs: 0 } as const;
    const serve = "exec python3 -m http.server 8251 --directory site >asked 2>&1";
    await (await sandbox.commands.run(serve, background)).disconnect();
    const browse = "exec firefox-esr --headless --profile ~/profile http://127.0.0.1:8251/ >firefox 2>&1";
    await sandbox.commands.run("until curl -fsS -o /dev/null http://127.0.0.1:8251/; do sleep 0.1; done; : >asked");
    await (await sandbox.commands.run(browse, background)).disconnect();
    await sandbox.commands.run("until grep -q GET asked; do sleep 0.2; done", { timeoutMs: 120_000 });
    return sandbox;
  },
  "Chromium, headless": () => chromium(),
} as const;

/** A sandbox whose Chromium shows the page; it is killed after the test, where that has not killed it. */
async function chromium(): Promise<Sandbox> {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  await sandbox.files.write(
    "open.mjs",
    `import { createRequire } from "node:module";
const { chromium } = createRequire("/home/user/")("playwright-core");
const [context] = (await chromium.connectOverCDP("http://localhost:9222")).contexts();
await (await context.newPage()).goto(${JSON.stringify(PAGE)});
process.exit(0);`,
  );
  await sandbox.commands.run("node open.mjs", { timeoutMs: 120_000 });
  return sandbox;
}

async function pause({ sandboxId }: Sandbox, body: object): Promise<void> {
  const { status, text } = await api(platform, "POST", `/sandboxes/${sandboxId}/pause`, { body, timeoutMs: 600_000 });
  expect(status, text).toBeLessThan(300);
}

/** By how many MB the memory of the machine shrinks while these run; they are killed afterwards. */
async function grown(start: () => Promise<readonly unknown[]>): Promise<number> {
  await delay(10_000);
  const before = availableMb();
  const started = await start();
  try {
    for (const one of started) expect(one).toBeInstanceOf(Sandbox);
    // The last pages of lazy restores are in.
    await delay(15_000);
    return before - availableMb();
  } finally {
    for (const one of started) if (one instanceof Sandbox) await one.kill();
  }
}

function availableMb(): number {
  return Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
}

function table(figures: ReadonlyMap<string, readonly number[]>): string {
  const lines = [...figures].map(([name, all]) => {
    const sorted = all.toSorted((a, b) => a - b);
    const middle = Math.round(sorted[Math.floor(sorted.length / 2)] ?? Number.NaN);
    const [before = "", budget = ""] = BEFORE[name] ?? [];
    const verdict = budget === "" ? "" : middle <= Number(budget.replace(" ", "")) ? "met" : "MISSED";
    return `| ${name} | ${before} | ${middle} | ${Math.round(sorted[0] ?? Number.NaN)} | ${budget} | ${verdict} |`;
  });
  const head = "| ms | before | now, median | now, best | budget of the median | |";
  return [head, "|---|---|---|---|---|---|", ...lines].join("\n");
}
