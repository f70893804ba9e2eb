/** The screen of a desktop as the console shows it and hands it over, with the programs of the template: who may steer, watch, or neither. */

import { Sandbox } from "@e2b/desktop";
import { expect, test } from "vitest";
import { END, handOver, PLACES, passwordsOf } from "../../console/src/sandbox/screen/scripts.ts";
import { viewer } from "../../console/src/sandbox/screen/viewer-script.ts";
import { openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards } from "../support/sandbox/sdk.ts";
import { connectScreen } from "./rfb.ts";

const platform = openPlatform();
const LIVES = { timeoutMs: 900_000 };

test("of a screen that is handed over one password steers, the other one watches only, and without one nobody is let in", async () => {
  const sandbox = killedAfterwards(await Sandbox.create(LIVES));
  const handed = await sandbox.commands.run(handOver(), { timeoutMs: 60_000 });
  const { takes, watches } = passwordsOf(handed.stdout);
  const connect = (password?: string) =>
    connectScreen(platform, sandbox.sandboxId, {
      port: PLACES.pagePort,
      ...(password === undefined ? {} : { password }),
    });
  expect((await connect()).answer).toBe("ended");
  expect((await connect("wrong")).answer).toBe("refused");

  await sandbox.moveMouse(500, 400);
  const watcher = await connect(watches);
  expect(watcher.answer).toBe("let in");
  await watcher.point(11, 12);
  expect(await sandbox.getCursorPosition()).toEqual({ x: 500, y: 400 });
  const steers = await connect(takes);
  expect(steers.answer).toBe("let in");
  await steers.point(311, 212);
  await expect.poll(() => sandbox.getCursorPosition(), { timeout: 15_000 }).toEqual({ x: 311, y: 212 });
  // The watcher has not become one who steers by that.
  await watcher.point(13, 14);
  expect(await sandbox.getCursorPosition()).toEqual({ x: 311, y: 212 });

  await sandbox.commands.run(END, { timeoutMs: 60_000 });
  await expect.poll(() => [watcher.isOpen(), steers.isOpen()], { timeout: 30_000 }).toEqual([false, false]);
});

test("the live screen of a desktop greets the page that has started it, and listens nowhere", async () => {
  const sandbox = killedAfterwards(await Sandbox.create(LIVES));
  const listening = async () => (await sandbox.commands.run("netstat -ltn")).stdout;
  const before = await listening();
  for (const takesOver of [false, true]) {
    const live = await sandbox.commands.run(viewer(takesOver), { background: true, stdin: true, timeoutMs: 0 });
    await expect.poll(() => live.stdout, { timeout: 30_000 }).toBe("RFB 003.008\n");
    expect(await listening()).toBe(before);
    await live.kill();
  }
  const running = async () => (await sandbox.commands.run("pgrep -f '[s]creen-viewer' || true")).stdout;
  await expect.poll(running, { timeout: 30_000 }).toBe("");
});

test("the stream of a desktop whose traffic is private is refused without the sandbox's token", async () => {
  const sandbox = killedAfterwards(await Sandbox.create({ ...LIVES, network: { allowPublicTraffic: false } }));
  await sandbox.stream.start();
  const page = (more: Readonly<Record<string, string>>) =>
    fetch(`${platform.sandboxUrl}/vnc.html`, {
      headers: { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "6080", ...more },
    });
  expect((await page({})).status).toBe(403);
  expect((await page({ "e2b-traffic-access-token": "wrong" })).status).toBe(403);
  expect((await page({ "e2b-traffic-access-token": sandbox.trafficAccessToken ?? "" })).status).toBe(200);
});
