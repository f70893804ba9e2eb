/** The screen of a sandbox in the console, with programs in a sandbox of the base template that stand for those of a desktop. */

import type { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { sharedConsole, violations } from "../support/browser/browser.ts";
import { ownSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();

/** Takes a picture of a screen that is as wide as a file says. */
const SCROT = `#!/usr/bin/env python3
import struct, sys, zlib
try: width = int(open("/home/user/width").read())
except OSError: width = 320
part = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
rows = b"".join(b"\\0" + b"\\x20\\x80\\xff" * min(width, 320) for _ in range(200))
with open(sys.argv[-1], "wb") as to:
    to.write(b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, 200, 8, 2, 0, 0, 0)))
    to.write(part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
`;
const X11VNC = `#!/usr/bin/env python3
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("-rfbport") + 1])))
while True: server.accept()[0].close()
`;
const NOVNC = `#!/bin/bash
cd /opt/noVNC && python3 -m http.server "$4"
`;

async function likeDesktop(): Promise<Sandbox> {
  const sandbox = await ownSandbox({ timeoutMs: 600_000 });
  await sandbox.files.write([
    { path: "/usr/local/bin/scrot", data: SCROT },
    { path: "/usr/local/bin/x11vnc", data: X11VNC },
    { path: "/home/user/novnc_proxy", data: NOVNC },
  ]);
  await sandbox.commands.run(
    "chmod +x /usr/local/bin/{scrot,x11vnc} && sudo install -D -m 755 novnc_proxy /opt/noVNC/utils/novnc_proxy && " +
      "echo '<title>noVNC of the sandbox</title>' | sudo tee /opt/noVNC/vnc.html",
  );
  return sandbox;
}

test("a sandbox's screen is watched in the console, and is taken over in a window that knows nothing of the console", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("watching, 320 × 200").waitFor();
  await page.getByRole("img", { name: "The sandbox's screen", exact: true }).waitFor();
  const drawn = () => page.evaluate("document.querySelector('.screen-picture').naturalWidth");
  await expect.poll(drawn, { timeout: 30_000 }).toBe(320);
  await sandbox.files.write("/home/user/width", "300");
  await page.getByText("watching, 300 × 200").waitFor();
  expect(await violations(page)).toEqual([]);

  await page.getByRole("button", { name: "Take over", exact: true }).click();
  const link = page.getByRole("link", { name: "Open the screen to take over", exact: true });
  const address = new URL((await link.getAttribute("href")) ?? "");
  expect(address.host).toBe(sandbox.getHost(6090));
  const password = await page.getByLabel("Password to take over", { exact: true }).innerText();
  expect(password.trim()).toMatch(/^[a-z2-9]{8}$/);
  expect(await page.locator(`a[href*="${password.trim()}"]`).count()).toBe(0);
  const opened = page.context().waitForEvent("page");
  await link.click();
  const window = await opened;
  onTestFinished(() => window.close());
  await expect.poll(() => window.title(), { timeout: 30_000 }).toBe("noVNC of the sandbox");
  expect(await window.evaluate("[window.opener, document.referrer]")).toEqual([null, ""]);

  await page.getByRole("button", { name: "End what was taken over", exact: true }).click();
  await link.waitFor({ state: "detached" });
  expect((await sandbox.commands.run("pgrep -f '[s]creen-server|[n]ovnc_proxy' || true")).stdout).toBe("");
});

test("a picture that a sandbox makes too large is not drawn, and the console says so", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  await sandbox.files.write("/home/user/width", "1000000");
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("a picture of 1000000 × 200 pixels, which is not drawn").waitFor();
  expect(await page.getByRole("img", { name: "The sandbox's screen" }).count()).toBe(0);
});
