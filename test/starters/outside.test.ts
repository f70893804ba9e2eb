/**
 * Templates that talk to the internet of the tests: a browser that is logged in to a site there, and the key of a coding agent. Needs a
 * platform that lives on it: `test/support/internet/configure.ts` before its `up`.
 */

import { ALL_TRAFFIC, Sandbox, Secret } from "e2b";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openInternet } from "../support/internet/internet.ts";
import { startInternet } from "../support/internet/start.ts";
import { api, openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";
import { ownSecret } from "../support/sandbox/secrets.ts";

const platform = openPlatform();
const internet = openInternet();
const LIVES = { timeoutMs: 900_000 };
const COPIES = 10;

let running: Awaited<ReturnType<typeof startInternet>> | undefined;
beforeAll(async () => {
  running = await startInternet(process.env.SVC_INSTANCE ?? "test");
});
afterAll(() => running?.stop());

interface Counted {
  readonly n: number;
  readonly opened: number;
}

const count = async (page: Page) => (await page.evaluate("({ n, opened })")) as Counted;

/** Waits until the page has counted on. */
async function counted(page: Page, above: number): Promise<Counted> {
  await expect.poll(async () => (await count(page)).n, { timeout: 60_000 }).toBeGreaterThan(above);
  return count(page);
}

/** Drives the sandbox's browser. One client at a time: what it has opened stays, when the work has ended. */
async function drive<T>({ sandboxId }: Sandbox, work: (page: Page) => Promise<T>): Promise<T> {
  const headers = { "e2b-sandbox-id": sandboxId, "e2b-sandbox-port": "9222" };
  const browser = await chromium.connectOverCDP(platform.sandboxUrl, { headers });
  try {
    return await work(await pageOf(browser));
  } finally {
    await browser.close();
  }
}

async function pageOf(browser: Browser): Promise<Page> {
  const [context] = browser.contexts();
  if (context === undefined) throw new Error("Chromium has no context of its own");
  return context.pages().find((page) => page.url().includes("plain.example")) ?? context.newPage();
}

test("ten copies of a browser that is logged in to a site outside are logged in, and their pages connect to it again", async () => {
  const source = killedAfterwards(await Sandbox.create("browser", LIVES));
  const before = await drive(source, async (page) => {
    await page.goto("http://plain.example/log-in?who=alice");
    await page.fill("#field", "half of a sentence");
    await page.evaluate("scrollTo(0, 1234)");
    return counted(page, 3);
  });
  expect(before.opened).toBe(1);
  const copies = await source.fork({ count: COPIES, timeoutMs: 600_000, requestTimeoutMs: 600_000 });
  for (const copy of copies) {
    if (!(copy instanceof Sandbox)) throw copy;
    killedAfterwards(copy);
  }
  for (const [index, copy] of (copies as Sandbox[]).entries()) {
    await drive(copy, async (page) => {
      expect(await page.textContent("#who")).toBe("alice");
      expect(await page.inputValue("#field")).toBe("half of a sentence");
      expect(await page.evaluate("Math.round(scrollY)")).toBe(1234);
      // The connection of the source is not the copy's: the page has opened one of its own, and counts on.
      await expect.poll(async () => (await count(page)).opened, { timeout: 60_000 }).toBe(2);
      await counted(page, before.n);
      await page.goto(`http://plain.example/log-in?who=copy${index}`);
      expect(await page.textContent("#who")).toBe(`copy${index}`);
    });
  }
  // The source has noticed nothing: its connection goes on, and it is who it was.
  await drive(source, async (page) => {
    expect((await counted(page, before.n)).opened).toBe(1);
    await page.reload();
    expect(await page.textContent("#who")).toBe("alice");
  });
});

test("a page connects again after a resume from the disk, and goes on where it was", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("browser", LIVES));
  const before = await drive(sandbox, async (page) => {
    await page.goto("http://plain.example/log-in?who=bob");
    return counted(page, 3);
  });
  const { sandboxId } = sandbox;
  const body = { frozen: false };
  const paused = await api(platform, "POST", `/sandboxes/${sandboxId}/pause`, { body, timeoutMs: 300_000 });
  expect(paused.status, paused.text).toBeLessThan(300);
  const resumed = await Sandbox.connect(sandboxId, { ...LIVES, requestTimeoutMs: 300_000 });
  await drive(resumed, async (page) => {
    await expect.poll(async () => (await count(page)).opened, { timeout: 60_000 }).toBe(2);
    await counted(page, before.n);
    expect(await page.textContent("#who")).toBe("bob");
  });
});

test("the key of a coding agent is in its requests, and nowhere in its sandbox", async () => {
  const { name, value } = await ownSecret();
  const sandbox = killedAfterwards(
    await Sandbox.create("claude", {
      ...LIVES,
      envs: {
        ANTHROPIC_API_KEY: "of-the-platform",
        ANTHROPIC_BASE_URL: "https://api.example",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      },
      network: {
        denyOut: [ALL_TRAFFIC],
        allowOut: ["api.example"],
        rules: { "api.example": [{ transform: { headers: { "x-api-key": Secret.fill(name) } } }] },
      },
    }),
  );
  const watch = await internet.watch();
  const ask = "exec claude -p hello </dev/null >said 2>&1";
  await (await sandbox.commands.run(ask, { background: true, timeoutMs: 0 })).disconnect();
  const asked = async () => (await watch.all("request")).filter(({ host }) => host === "api.example");
  const keys = async () => (await asked()).map(({ headers }) => headers["x-api-key"]);
  await expect.poll(keys, { timeout: 180_000 }).toContain(value);
  expect(new Set(await keys())).toEqual(new Set([value]));
  // Environments and open files of processes, and what was written.
  const look = `grep -rlFs -e ${value} /home /root /tmp /var/tmp /etc /proc/[0-9]*/environ || true`;
  expect((await sandbox.commands.run(look, { user: "root", timeoutMs: 120_000 })).stdout).toBe("");
});
