/** The template desktop, driven by the published package @e2b/desktop: each of its methods, and its sessions in pauses and copies. */

import { Sandbox } from "@e2b/desktop";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards, refusal } from "../support/sandbox/sdk.ts";

const platform = openPlatform();
const LIVES = { timeoutMs: 900_000 };
const PNG = [0x89, 0x50, 0x4e, 0x47];

const desktop = async (options: object = {}): Promise<Sandbox> =>
  killedAfterwards(await Sandbox.create({ ...LIVES, ...options }));
const run = async (sandbox: Sandbox, command: string) => (await sandbox.commands.run(command)).stdout.trim();
const ids = (sandbox: Sandbox, name: string) => run(sandbox, `pgrep -x ${name} | sort -n | tr '\\n' ' '`);

/** Opens an editor with an empty file and returns its window. */
async function editor(sandbox: Sandbox): Promise<string> {
  await sandbox.files.write("note.txt", "");
  await sandbox.launch("org.xfce.mousepad", "/home/user/note.txt");
  const shown = () => sandbox.getApplicationWindows("mousepad").catch(() => [""]);
  await expect.poll(async () => (await shown()).at(-1), { timeout: 30_000 }).toMatch(/^\d+$/);
  const window = (await shown()).at(-1) ?? "";
  await sandbox.commands.run(`xdotool windowactivate --sync ${window}`);
  return window;
}

/** Types into the editor of the sandbox, saves, and returns the file. */
async function typed(sandbox: Sandbox, text: string): Promise<string> {
  await sandbox.write(text);
  await sandbox.press(["ctrl", "s"]);
  await expect.poll(() => sandbox.files.read("note.txt"), { timeout: 15_000 }).toContain(text);
  return sandbox.files.read("note.txt");
}

test("a new desktop is the session that the template has brought, and its screen has the usual size", async () => {
  const began = performance.now();
  const sandbox = await desktop();
  console.log(`Sandbox.create() of @e2b/desktop took ${Math.round(performance.now() - began)} ms`);
  expect(await sandbox.getScreenSize()).toEqual({ width: 1024, height: 768 });
  expect(await ids(sandbox, "Xvfb")).toMatch(/^\d+$/);
  expect(await ids(sandbox, "xfce4-session")).toMatch(/^\d+$/);
  const shot = await sandbox.screenshot();
  expect([...shot.subarray(0, 4)]).toEqual(PNG);
  expect(shot.length).toBeGreaterThan(20_000);
});

test("another size or resolution gets a session of its own", async () => {
  const sandbox = await desktop({ resolution: [1280, 720], dpi: 120 });
  expect(await sandbox.getScreenSize()).toEqual({ width: 1280, height: 720 });
  expect(await run(sandbox, "xdpyinfo | grep -c '120x120 dots per inch'")).toBe("1");
  expect(await ids(sandbox, "Xvfb")).toMatch(/^\d+$/);
  expect(await ids(sandbox, "xfdesktop")).toMatch(/^\d+$/);
});

test("a second screen of a program leaves the first one alone", async () => {
  const sandbox = await desktop();
  const before = await ids(sandbox, "Xvfb");
  await (await sandbox.commands.run("Xvfb :99 -screen 0 640x480x24", { background: true, timeoutMs: 0 })).disconnect();
  await expect
    .poll(() => run(sandbox, "xdpyinfo -display :99 | grep -c 'dimensions: *640x480' || true"), { timeout: 15_000 })
    .toBe("1");
  expect(await ids(sandbox, "Xvfb")).toContain(before.trim());
  expect(await sandbox.getScreenSize()).toEqual({ width: 1024, height: 768 });
});

test("the mouse is moved, pressed, released, dragged, scrolled and found", async () => {
  const sandbox = await desktop();
  await sandbox.moveMouse(200, 300);
  expect(await sandbox.getCursorPosition()).toEqual({ x: 200, y: 300 });
  await sandbox.leftClick(400, 200);
  await sandbox.rightClick(410, 210);
  await sandbox.press("esc");
  await sandbox.middleClick(420, 220);
  await sandbox.press("esc");
  await sandbox.doubleClick(430, 230);
  await sandbox.scroll("up", 2);
  await sandbox.scroll("down");
  await sandbox.mousePress("left");
  await sandbox.mouseRelease("left");
  await sandbox.drag([100, 500], [300, 600]);
  expect(await sandbox.getCursorPosition()).toEqual({ x: 300, y: 600 });
  await sandbox.wait(100);
});

test("text is typed into the window of a launched program, which has a title", async () => {
  const sandbox = await desktop();
  const window = await editor(sandbox);
  expect(await sandbox.getWindowTitle(window)).toContain("note.txt");
  expect(await sandbox.getCurrentWindowId()).toMatch(/^\d+$/);
  expect(await typed(sandbox, "Hello desktop, it's 42%")).toContain("Hello desktop, it's 42%");
});

test("a page is opened in Chromium, and a text in the editor", async () => {
  const sandbox = await desktop();
  await sandbox.files.write("page.html", "<title>a page of the test</title><h1>hello</h1>");
  await sandbox.open("/home/user/page.html");
  const title = () => run(sandbox, "xdotool search --onlyvisible --name 'a page of the test' | head -n 1");
  await expect.poll(() => title().catch(() => ""), { timeout: 60_000 }).toMatch(/^\d+$/);
  await sandbox.files.write("words.txt", "words");
  await sandbox.open("/home/user/words.txt");
  const windows = () => sandbox.getApplicationWindows("mousepad").catch(() => [""]);
  await expect.poll(async () => (await windows())[0], { timeout: 30_000 }).toMatch(/^\d+$/);
});

/**
 * Connects to the stream from outside, as noVNC does, and answers its challenge with zeros (RFC 6143, 7.1).
 * @param kind of the log-in that it asks for: 1 is none, 2 a password
 */
async function streamAnswers(sandbox: Sandbox, kind: number): Promise<"ended" | "refused" | "let in"> {
  const headers = { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "6080" };
  const socket = new WebSocket(`${platform.sandboxUrl.replace(/^http/, "ws")}/websockify`, ["binary"], { headers });
  onTestFinished(() => socket.terminate());
  let came = Buffer.alloc(0);
  socket.on("error", () => undefined).on("message", (data: Buffer) => void (came = Buffer.concat([came, data])));
  const next = async (length: number) => {
    const isThere = () => came.length >= length || socket.readyState === WebSocket.CLOSED;
    await expect.poll(isThere, { timeout: 60_000 }).toBe(true);
    const part = came.subarray(0, length);
    came = came.subarray(length);
    return part;
  };
  expect((await next(12)).toString()).toMatch(/^RFB 003\.00\d\n$/);
  socket.send(Buffer.from("RFB 003.008\n"));
  expect([...(await next(2))]).toEqual([1, 2]);
  socket.send(Buffer.of(kind));
  if (kind === 2) {
    expect(await next(16)).toHaveLength(16);
    socket.send(Buffer.alloc(16));
  }
  const result = await next(4);
  if (result.length < 4) return "ended";
  return result.readUInt32BE() === 0 ? "let in" : "refused";
}

test("the package waits for what a command says, takes a picture in its other form, and streams one window alone", async () => {
  const sandbox = await desktop();
  expect(await sandbox.waitAndVerify("xrandr", ({ exitCode }) => exitCode === 0)).toBe(true);
  expect(await sandbox.waitAndVerify("false", () => true, 1, 0.5)).toBe(false);
  expect((await sandbox.screenshot("blob")).size).toBeGreaterThan(20_000);
  const windowId = await editor(sandbox);
  await sandbox.stream.start({ windowId });
  expect(await run(sandbox, "pgrep -a -x x11vnc")).toContain(`-id ${windowId}`);
  const url = new URL(sandbox.stream.getUrl({ autoConnect: false, viewOnly: true, resize: "off" }));
  expect([url.host, url.search]).toEqual([sandbox.getHost(6080), "?view_only=true&resize=off"]);
  await sandbox.stream.stop();
});

test("the stream is served with a password, one at a time, and stops", async () => {
  const sandbox = await desktop();
  await sandbox.stream.start({ requireAuth: true });
  const key = sandbox.stream.getAuthKey();
  expect(sandbox.stream.getUrl({ authKey: key })).toContain(`password=${key}`);
  expect((await refusal(sandbox.stream.start())).message).toContain("already running");
  const page = await fetch(`${platform.sandboxUrl}/vnc.html`, {
    headers: { "e2b-sandbox-id": sandbox.sandboxId, "e2b-sandbox-port": "6080" },
  });
  expect(page.status).toBe(200);
  expect(await page.text()).toContain("noVNC");
  // The server says its version, and then which kinds of log-in it takes: one of them, with a password (RFC 6143, 7.1.2).
  const asked = `exec 3<>/dev/tcp/localhost/5900; head -c 12 <&3; printf 'RFB 003.008\\n' >&3; head -c 2 <&3 | od -An -tu1`;
  expect(await run(sandbox, `bash -c '${asked.replaceAll("'", `'"'"'`)}'`)).toMatch(/^RFB 003\.00\d\s+1 +2$/);
  // Without a log-in, and with a wrong password.
  expect([await streamAnswers(sandbox, 1), await streamAnswers(sandbox, 2)]).toEqual(["ended", "refused"]);
  await sandbox.stream.stop();
  expect(await run(sandbox, "pgrep -x x11vnc || true")).toBe("");
  await sandbox.stream.start({ requireAuth: false });
  expect(() => sandbox.stream.getAuthKey()).toThrow();
});

test("a session is paused and goes on, and in a copy another text is typed", async () => {
  const source = await desktop();
  await editor(source);
  await typed(source, "first ");
  const paused = performance.now();
  await source.pause();
  const stored = performance.now();
  const resumed = await Sandbox.connect(source.sandboxId, LIVES);
  console.log(`pause ${Math.round(stored - paused)} ms, frozen resume ${Math.round(performance.now() - stored)} ms`);
  // What the package sets when it makes a sandbox.
  const env = { envs: { DISPLAY: ":0" } };
  const type = async (sandbox: Sandbox, text: string) => {
    await sandbox.commands.run(`xdotool type --delay 20 '${text}'; xdotool key ctrl+s`, env);
    await expect.poll(() => sandbox.files.read("note.txt"), { timeout: 15_000 }).toContain(text);
  };
  const began = performance.now();
  const [copy] = await resumed.fork({ count: 1, timeoutMs: 120_000, requestTimeoutMs: 120_000 });
  if (!(copy instanceof Sandbox)) throw copy ?? new Error("no fork");
  onTestFinished(async () => {
    await copy.kill();
  });
  console.log(`fork ${Math.round(performance.now() - began)} ms`);
  await type(copy, "copied ");
  await type(resumed, "source ");
  expect((await copy.files.read("note.txt")).trim()).toBe("first copied");
  expect((await resumed.files.read("note.txt")).trim()).toBe("first source");
});

test("a desktop whose Chromium shows a moving page is paused, goes on, and is copied ten times", async () => {
  const source = await desktop();
  await source.files.write(
    "moving.html",
    "<title>0</title><script>let n = 0; setInterval(() => { document.title = `count ${++n}` }, 200)</script>",
  );
  await source.open("/home/user/moving.html");
  const env = { envs: { DISPLAY: ":0" } };
  const count = async (sandbox: { commands: Sandbox["commands"] }) => {
    const name = "xdotool getwindowname $(xdotool search --onlyvisible --name '^count ' | head -n 1)";
    const { stdout } = await sandbox.commands.run(name, env).catch(() => ({ stdout: "" }));
    return Number(/^count (\d+)/.exec(stdout)?.[1] ?? Number.NaN);
  };
  // A window has no name for a moment, and a command that is late none at all.
  const counted = async (sandbox: { commands: Sandbox["commands"] }, above: number) => {
    const seen = { last: Number.NaN };
    const look = async () => (seen.last = await count(sandbox));
    await expect.poll(look, { timeout: 60_000 }).toBeGreaterThan(above);
    return seen.last;
  };
  await counted(source, 3);
  const paused = performance.now();
  await source.pause();
  console.log(`pause with Chromium ${Math.round(performance.now() - paused)} ms`);
  const resumed = await Sandbox.connect(source.sandboxId, LIVES);
  const there = await counted(resumed, 3);
  await counted(resumed, there);
  const began = performance.now();
  const copies = await resumed.fork({ count: 10, timeoutMs: 600_000, requestTimeoutMs: 600_000 });
  console.log(`ten forks ${Math.round(performance.now() - began)} ms`);
  for (const copy of copies) {
    if (!(copy instanceof Sandbox)) throw copy;
    killedAfterwards(copy);
  }
  for (const copy of copies as Sandbox[]) {
    await counted(copy, await counted(copy, there));
  }
});
