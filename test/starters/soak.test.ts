/**
 * A desktop and a browser that are stored again and again, while a page in their Chromium counts by a timer and over a WebSocket: five
 * times each, or as often as SVC_TEST_ROUNDS says (`npm run soak`). Nothing that the page sends is lost, and nothing is left on the host.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Sandbox as Desktop } from "@e2b/desktop";
import { Sandbox } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { countAtRest, expectNothingLeft } from "../support/platform/leaks.ts";
import { expectNoProblems } from "../support/platform/no-problems.ts";
import { api, checkout, openPlatform } from "../support/platform/platform.ts";
import { untilReady } from "../support/platform/programs.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const ROUNDS = Number(process.env.SVC_TEST_ROUNDS ?? 5);
const LIVES = { timeoutMs: 86_400_000, requestTimeoutMs: 600_000 };
const WAYS = ["pause", "disk", "fork"] as const;

/**
 * Serves the page and counts what comes over its WebSocket. A number that is not the next one, or a second connection, would be what a
 * pause has lost.
 */
const SERVER = `
const { writeFileSync } = require("node:fs");
const { createServer } = require("node:http");
const { WebSocketServer } = require("ws");
const seen = { last: 0, gaps: 0, connections: 0, timer: 0 };
const page = "<title>soak</title><script>" +
  "let n = 0, answered = 0, timer = 0; setInterval(() => timer++, 50);" +
  "const socket = new WebSocket('ws://127.0.0.1:8000/');" +
  "socket.onmessage = ({ data }) => { answered = Number(data); document.title = 'soak ' + answered };" +
  "setInterval(() => { if (socket.readyState === 1 && n === answered) socket.send(JSON.stringify({ n: ++n, timer })) }, 100)" +
  "</script>";
const server = createServer((_request, answer) => answer.setHeader("content-type", "text/html").end(page));
new WebSocketServer({ server }).on("connection", (socket) => {
  seen.connections++;
  socket.on("message", (text) => {
    const { n, timer } = JSON.parse(text);
    if (n !== seen.last + 1 || timer < seen.timer) seen.gaps++;
    Object.assign(seen, { last: n, timer });
    writeFileSync("/home/user/seen.new", JSON.stringify(seen));
    require("node:fs").renameSync("/home/user/seen.new", "/home/user/seen");
    socket.send(String(n));
  });
});
server.listen(8000, "127.0.0.1");
`;

/** Opens the page in the Chromium that is up, of its own context, and leaves it open. */
const OPEN = `
import { createRequire } from "node:module";
const { chromium } = createRequire("/home/user/")("playwright-core");
const browser = await chromium.connectOverCDP("http://localhost:9222");
const page = await browser.contexts()[0].newPage();
await page.goto("http://127.0.0.1:8000/");
process.exit(0);
`;

interface Counted {
  readonly last: number;
  readonly gaps: number;
  readonly connections: number;
  readonly timer: number;
}

/** A new sandbox whose Chromium shows the page. */
const SHOWN = {
  desktop: async () => {
    const desktop = await Desktop.create(LIVES);
    const sandbox = killedAfterwards(await Sandbox.connect(desktop.sandboxId, LIVES));
    await serve(sandbox);
    await desktop.open("http://127.0.0.1:8000/");
    return sandbox;
  },
  browser: async () => {
    const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
    await serve(sandbox);
    await sandbox.files.write("open.mjs", OPEN);
    await sandbox.commands.run("node open.mjs", { timeoutMs: 120_000 });
    return sandbox;
  },
} as const;
type Kind = keyof typeof SHOWN;

beforeAll(() => untilReady(platform), 90_000);

test.each(["browser", "desktop"] as const)(
  `a %s with a page that counts is stored ${ROUNDS} times and loses nothing, and nothing is left of it`,
  async (kind) => {
    // What the platform makes once, on first use of the template.
    await (await SHOWN[kind]()).kill();
    const before = await countAtRest(platform);
    const times = await soak(kind);
    for (const [way, all] of Object.entries(times)) console.log(`${kind}, ${way}: ${summary(all)}`);
    await expectNothingLeft(platform, before);
    await expectNoProblems(platform);
  },
  900_000 + ROUNDS * 240_000,
);

async function soak(kind: Kind): Promise<Readonly<Record<string, number[]>>> {
  const times: Record<string, number[]> = {};
  let sandbox = await SHOWN[kind]();
  try {
    let counted = await grownFrom(sandbox, { last: 0, gaps: 0, connections: 1, timer: 0 });
    for (let round = 0; round < ROUNDS; round++) {
      const way = WAYS[round % WAYS.length] ?? "pause";
      const began = performance.now();
      if (way === "fork") {
        const [copy] = await sandbox.fork({ count: 1, ...LIVES });
        if (!(copy instanceof Sandbox)) throw copy ?? new Error("the platform made no copy");
        try {
          await grownFrom(copy, counted);
        } finally {
          await copy.kill();
        }
      } else {
        const body = way === "disk" ? { frozen: false } : {};
        const paused = await api(platform, "POST", `/sandboxes/${sandbox.sandboxId}/pause`, {
          body,
          timeoutMs: 600_000,
        });
        expect(paused.status, paused.text).toBeLessThan(300);
        sandbox = await Sandbox.connect(sandbox.sandboxId, LIVES);
      }
      counted = await grownFrom(sandbox, counted);
      (times[way] ??= []).push(performance.now() - began);
    }
  } finally {
    await sandbox.kill();
  }
  return times;
}

async function serve(sandbox: Sandbox): Promise<void> {
  const files = readdirSync(join(checkout, "node_modules/ws"), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(js|mjs|json)$/.test(name))
    .map((name) => ({
      path: `/home/user/node_modules/ws/${name}`,
      data: readFileSync(join(checkout, "node_modules/ws", name), "utf8"),
    }));
  await sandbox.files.write([...files, { path: "/home/user/server.cjs", data: SERVER }]);
  await (await sandbox.commands.run("exec node server.cjs", { background: true, timeoutMs: 0 })).disconnect();
  await sandbox.commands.run("until curl -fsS -o /dev/null http://127.0.0.1:8000/; do sleep 0.1; done");
}

/** Waits until the page has sent more than before, and sees that it has lost nothing. */
async function grownFrom(sandbox: Sandbox, before: Counted): Promise<Counted> {
  const read = async () =>
    JSON.parse(await sandbox.files.read("/home/user/seen").catch(() => "{}")) as Partial<Counted>;
  await expect
    .poll(async () => (await read()).last ?? 0, { timeout: 120_000, interval: 200 })
    .toBeGreaterThan(before.last);
  const now = (await read()) as Counted;
  expect({ gaps: now.gaps, connections: now.connections }).toEqual({ gaps: 0, connections: 1 });
  expect(now.timer).toBeGreaterThan(before.timer);
  return now;
}

/** Each time from the call on until the page has gone on. */
function summary(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  return `${times.length} times, p50 ${at(0.5)} ms, longest ${at(1)} ms`;
}
