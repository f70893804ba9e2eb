/** The template desktop, driven by the published package @e2b/desktop: each of its methods, and its sessions in pauses and copies. */

import { Sandbox } from "@e2b/desktop";
import { expect, onTestFinished, test } from "vitest";
import { openPlatform } from "../support/platform/platform.ts";
import { killedAfterwards, refusal } from "../support/sandbox/sdk.ts";
import { keepPicture } from "./pictures.ts";
import { connectScreen } from "./rfb.ts";

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
  await keepPicture("new desktop", shot);
});

test("another size or resolution gets a session of its own", async () => {
  const sandbox = await desktop({ resolution: [1280, 720], dpi: 120 });
  expect(await sandbox.getScreenSize()).toEqual({ width: 1280, height: 720 });
  expect(await run(sandbox, "xdpyinfo | grep -c '120x120 dots per inch'")).toBe("1");
  expect(await ids(sandbox, "Xvfb")).toMatch(/^\d+$/);
  expect(await ids(sandbox, "xfdesktop")).toMatch(/^\d+$/);
  await keepPicture("1280 x 720", await sandbox.screenshot());
});

test("another display gets a session of its own", async () => {
  const sandbox = killedAfterwards(await Sandbox.create("desktop", { ...LIVES, display: ":3" }));
  expect(await sandbox.getScreenSize()).toEqual({ width: 1024, height: 768 });
  expect(await run(sandbox, "tr '\\0' ' ' </proc/$(pgrep -x Xvfb)/cmdline")).toContain("Xvfb :3 -ac");
  expect(await ids(sandbox, "xfce4-session")).toMatch(/^\d+$/);
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

/** Opens a window that notes what the mouse does in it, and returns which buttons went down there, or up, in this order. */
async function noted(sandbox: Sandbox): Promise<(what: "Press" | "Release") => Promise<readonly number[]>> {
  const note = "exec stdbuf -oL xev -geometry 500x400+300+200 >events";
  await (await sandbox.commands.run(note, { background: true, timeoutMs: 0 })).disconnect();
  const shown = () => run(sandbox, "xdotool search --onlyvisible --name 'Event Tester' || true");
  await expect.poll(shown, { timeout: 30_000 }).toMatch(/^\d+$/);
  await sandbox.commands.run(`xdotool windowactivate --sync ${await shown()}`);
  return async (what) => {
    const events = await sandbox.files.read("events");
    const buttons = events.matchAll(new RegExp(`^Button${what} event[^]*?, button (\\d)`, "gm"));
    return [...buttons].map(([, button]) => Number(button));
  };
}

test("the mouse is moved, pressed, released, dragged, scrolled and found", async () => {
  const sandbox = await desktop();
  const buttons = await noted(sandbox);
  await sandbox.moveMouse(200, 300);
  expect(await sandbox.getCursorPosition()).toEqual({ x: 200, y: 300 });
  await sandbox.leftClick(500, 400);
  await sandbox.rightClick(510, 410);
  await sandbox.middleClick(520, 420);
  await sandbox.doubleClick(530, 430);
  await sandbox.scroll("up", 2);
  await sandbox.scroll("down");
  await sandbox.mousePress("right");
  await sandbox.mouseRelease("right");
  await sandbox.drag([400, 450], [600, 500]);
  expect(await sandbox.getCursorPosition()).toEqual({ x: 600, y: 500 });
  const all = [1, 3, 2, 1, 1, 4, 4, 5, 3, 1];
  await expect.poll(() => buttons("Press"), { timeout: 15_000 }).toEqual(all);
  await expect.poll(() => buttons("Release"), { timeout: 15_000 }).toEqual(all);
  const began = performance.now();
  await sandbox.wait(300);
  expect(performance.now() - began).toBeGreaterThan(300);
});

test("text is typed into the window of a launched program, which has a title", async () => {
  const sandbox = await desktop();
  const window = await editor(sandbox);
  expect(await sandbox.getWindowTitle(window)).toContain("note.txt");
  expect(await sandbox.getCurrentWindowId()).toMatch(/^\d+$/);
  expect(await typed(sandbox, "Hello desktop, it's 42%")).toContain("Hello desktop, it's 42%");
  await keepPicture("text in the editor", await sandbox.screenshot());
});

test("the desktop has fonts for Chinese, Japanese, Korean and emoji", async () => {
  const sandbox = await desktop();
  for (const character of "你こ안😀") {
    const code = character.codePointAt(0)?.toString(16) ?? "";
    expect([character, await run(sandbox, `fc-list ':charset=${code}' family`)]).not.toEqual([character, ""]);
  }
});

test("a page is opened in Chromium, and a text in the editor", async () => {
  const sandbox = await desktop();
  const words = "<meta charset=utf-8><title>a page of the test</title><h1>hello 你好 こんにちは 안녕하세요 😀</h1>";
  await sandbox.files.write("page.html", words);
  await sandbox.open("/home/user/page.html");
  const title = () => run(sandbox, "xdotool search --onlyvisible --name 'a page of the test' | head -n 1");
  await expect.poll(() => title().catch(() => ""), { timeout: 60_000 }).toMatch(/^\d+$/);
  await sandbox.files.write("words.txt", "words");
  await sandbox.open("/home/user/words.txt");
  const windows = () => sandbox.getApplicationWindows("mousepad").catch(() => [""]);
  await expect.poll(async () => (await windows())[0], { timeout: 30_000 }).toMatch(/^\d+$/);
  await keepPicture("a page in Chromium", await sandbox.screenshot());
});

test("the package waits for what a command says, takes a picture in its other forms, and streams one window alone", async () => {
  const sandbox = await desktop();
  expect(await sandbox.waitAndVerify("xrandr", ({ exitCode }) => exitCode === 0)).toBe(true);
  expect(await sandbox.waitAndVerify("false", () => true, 1, 0.5)).toBe(false);
  expect((await sandbox.screenshot("blob")).size).toBeGreaterThan(20_000);
  const streamed = await new Response(await sandbox.screenshot("stream")).arrayBuffer();
  expect(streamed.byteLength).toBeGreaterThan(20_000);
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
  const answerTo = async (password: { password?: string }) =>
    (await connectScreen(platform, sandbox.sandboxId, { port: 6080, ...password })).answer;
  expect(await answerTo({})).toBe("ended");
  expect(await answerTo({ password: "wrong" })).toBe("refused");
  expect(await answerTo({ password: key })).toBe("let in");
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
