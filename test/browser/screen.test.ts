/** The screen of a sandbox in the console, with programs in a sandbox of the base template that stand for those of a desktop. */

import type { Sandbox } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { sharedConsole, violations, violationsInBothThemes } from "../support/browser/browser.ts";
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
/**
 * Stands for the server of a screen: for a hand-over it listens at a port, and for the live screen it speaks RFB 3.8 (RFC 6143) with a
 * client at its input, shows one colour, and writes down what it is told. The screen is as large as a file says, and the client gets a
 * name, bells and a clipboard that it did not ask for. Where a file says so, it speaks RFB 3.3, in which the server chooses the log-in.
 */
const X11VNC = `#!/usr/bin/env python3
import os, socket, struct, sys
if "-inetd" not in sys.argv:
    server = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("-rfbport") + 1])))
    while True: server.accept()[0].close()
try: width, height = map(int, open("/home/user/size").read().split())
except OSError: width, height = 320, 200
client = socket.socket(fileno=0)
def read(length):
    data = client.recv(length, socket.MSG_WAITALL)
    if len(data) < length: sys.exit()
    return data
def tell(line):
    with open("/home/user/told", "a") as to: to.write(line + "\\n")
if os.path.exists("/home/user/old"):
    client.sendall(b"RFB 003.003\\n")
    read(12)
    client.sendall(struct.pack(">II", 6, 0))
    read(1)
client.sendall(b"RFB 003.008\\n")
read(12)
client.sendall(bytes([1, 1]))
read(1)
client.sendall(bytes(4))
read(1)
name = b"\\x1b]0;<b>name</b>\\x07"
client.sendall(struct.pack(">HHBBBBHHHBBB3xI", width, height, 32, 24, 0, 1, 255, 255, 255, 16, 8, 0, len(name)) + name)
tell("watched" if "-viewonly" in sys.argv else "taken over")
isDrawn = False
while True:
    kind = read(1)[0]
    if kind == 0: read(19)
    elif kind == 2: read(4 * struct.unpack(">xH", read(3))[0])
    elif kind == 3:
        read(9)
        if not isDrawn:
            text = b"of the sandbox"
            client.sendall(b"\\2" * 10000 + b"\\3\\0\\0\\0" + struct.pack(">I", len(text)) + text)
            client.sendall(struct.pack(">BxHHHHHi", 0, 1, 0, 0, width, height, 7) + bytes([0x80, 0x20, 0x80, 0xff]))
        isDrawn = True
    elif kind == 4: tell("key %d %d" % struct.unpack(">BxxI", read(7)))
    elif kind == 5: tell("pointer %d" % read(5)[0])
    else: tell("unknown %d" % kind)
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

const LIVE = ".screen-live canvas";
const COLOUR = `document.querySelector("${LIVE}")?.getContext("2d").getImageData(10, 10, 1, 1).data.join()`;

test("a sandbox's screen is watched in the console, takes no input until it is taken over, and ends with the tab", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  const told = async () => (await sandbox.files.read("/home/user/told")).trim().split("\n");
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("watching, 320 × 200").waitFor();
  await expect.poll(() => page.evaluate(COLOUR), { timeout: 30_000 }).toBe("32,128,255,255");
  expect(await violationsInBothThemes(page)).toEqual([]);
  const canvas = page.locator(LIVE);
  await canvas.click();
  await page.keyboard.press("a");
  expect(await told()).toEqual(["watched"]);

  await page.getByRole("button", { name: "Take over", exact: true }).click();
  await page.getByText("taken over, 320 × 200").waitFor();
  await expect.poll(() => page.evaluate(COLOUR), { timeout: 30_000 }).toBe("32,128,255,255");
  // The keyboard goes to the screen by itself.
  await page.keyboard.press("a");
  await expect.poll(told, { timeout: 30_000 }).toEqual(["watched", "taken over", "key 1 97", "key 0 97"]);
  await canvas.click();
  await expect.poll(told, { timeout: 30_000 }).toContain("pointer 1");
  expect(await violations(page)).toEqual([]);

  await page.keyboard.press("Control+Shift+Period");
  const back = page.getByRole("button", { name: "Watch only", exact: true });
  await expect.poll(() => page.evaluate("document.activeElement?.textContent")).toBe("Watch only");
  // Ctrl and Shift went to the screen before, and are let go there.
  await expect.poll(told, { timeout: 30_000 }).toEqual(expect.arrayContaining(["key 0 65507", "key 0 65505"]));
  await back.click();
  await page.getByText("watching, 320 × 200").waitFor();
  await expect.poll(async () => (await told()).at(-1)).toBe("watched");

  const running = async () => (await sandbox.commands.run("pgrep -f '[s]creen-viewer' || true")).stdout;
  expect(await running()).not.toBe("");
  await page.getByRole("tab", { name: "Logs", exact: true }).click();
  await expect.poll(running, { timeout: 30_000 }).toBe("");
});

test("a screen that a sandbox makes too large is not drawn, the console says so, and pictures stand for it", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  await sandbox.files.write("/home/user/size", "65535 65535");
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("a screen of 65535 × 65535 pixels").waitFor();
  await page.getByText("watching, 320 × 200").waitFor();
  expect(await page.locator(LIVE).count()).toBe(0);
  await sandbox.files.write("/home/user/size", "300 200");
  await page.getByRole("button", { name: "Try the live screen again" }).click();
  await page.getByText("watching, 300 × 200").waitFor();
  await page.locator(LIVE).waitFor();
});

test("a screen whose server chooses a log-in that the page does not know is given up, and pictures stand for it", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  await sandbox.files.write("/home/user/old", "");
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("The screen asks for a password.").waitFor();
  await page.getByText("watching, 320 × 200").waitFor();
});

test("without the live screen's programs the console shows a picture a second, and says why", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  await sandbox.commands.run("rm /usr/local/bin/x11vnc");
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("The live screen needs x11vnc").waitFor();
  await page.getByRole("img", { name: "The sandbox's screen", exact: true }).waitFor();
  const drawn = () => page.evaluate("document.querySelector('.screen-picture').naturalWidth");
  await expect.poll(drawn, { timeout: 30_000 }).toBe(320);
  await sandbox.files.write("/home/user/width", "300");
  await page.getByText("watching, 300 × 200").waitFor();
  expect(await violations(page)).toEqual([]);
  await sandbox.files.write("/home/user/width", "1000000");
  await page.getByText("a picture of 1000000 × 200 pixels, which is not drawn").waitFor();
});

test("a sandbox's screen is handed over to a window that knows nothing of the console", async () => {
  const { platform, page: open } = console();
  const sandbox = await likeDesktop();
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox.sandboxId}/screen`);
  await page.getByText("Hand the screen over to somebody else").click();
  await page.getByRole("button", { name: "Make passwords and links", exact: true }).click();
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

  await page.getByRole("button", { name: "End the hand-over", exact: true }).click();
  await link.waitFor({ state: "detached" });
  expect((await sandbox.commands.run("pgrep -f '[s]creen-server|[n]ovnc_proxy' || true")).stdout).toBe("");
});
