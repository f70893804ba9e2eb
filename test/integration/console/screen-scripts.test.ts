/** What the console runs in a sandbox for its screen, in a real shell, with programs that stand for those of a desktop. */

import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { END, handOver, NO_SCREEN, passwordsOf, TAKE_PICTURE } from "../../../console/src/sandbox/screen/scripts.ts";
import { viewer } from "../../../console/src/sandbox/screen/viewer-script.ts";
import { freePort } from "../../support/peers/listening.ts";

const execute = promisify(execFile);

/** A server that stands for `x11vnc` and for noVNC's page: it notes its arguments, and the passwords that it reads. */
const SERVER = `#!${process.execPath}
const { appendFileSync, readFileSync, rmSync, statSync } = require("node:fs");
const { basename } = require("node:path");
const [, self, ...given] = process.argv;
const after = (name) => given[given.indexOf(name) + 1];
const say = (line) => appendFileSync(process.env.SEEN, line + "\\n");
if (given.includes("-inetd")) {
  const client = new (require("node:net").Socket)({ fd: 0, readable: true, writable: true });
  say(basename(self) + " " + given.join(" "));
  client.write("RFB");
  client.on("data", (data) => {
    if (String(data) !== "quit") return client.write("got " + data);
    require("node:fs").writeFileSync(after("-o"), "the display has ended");
    process.exit(1);
  });
  client.on("end", () => say("alone"));
  return;
}
say([basename(self), process.env.DISPLAY, ...given].join(" "));
if (given.includes("-passwdfile")) {
  const [kind, file] = after("-passwdfile").split(":");
  say((statSync(file).mode & 0o777).toString(8) + " " + JSON.stringify(readFileSync(file, "utf8")));
  if (kind === "rm") rmSync(file);
}
require("node:net").createServer((socket) => socket.end()).listen(Number(after(given.includes("--listen") ? "--listen" : "-rfbport")), "127.0.0.1");
`;
const PICTURE = `#!/bin/sh
printf 'a picture of %s' "$DISPLAY" >"$2"
`;

interface Desktop {
  readonly env: Readonly<Record<"HOME" | "PATH" | "DISPLAY" | "SEEN", string>>;
  readonly home: string;
  readonly place: string;
  readonly seen: () => string;
  readonly run: (script: string) => Promise<{ readonly stdout: string }>;
  readonly script: string;
}

/** A home directory and a path of programs; whatever runs of it ends with the test. */
async function desktop(programs: Readonly<Record<string, string>>): Promise<Desktop> {
  const home = mkdtempSync(join(tmpdir(), "svc-screen-"));
  const page = join(home, "noVNC");
  mkdirSync(join(page, "utils"), { recursive: true });
  mkdirSync(join(home, "bin"));
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(home, name), text, { mode: 0o755 });
  const env = { HOME: home, PATH: `${home}/bin:/usr/bin:/bin`, DISPLAY: ":7", SEEN: join(home, "seen") };
  const run = (script: string) => execute("/bin/bash", ["-c", script], { env, cwd: "/" });
  onTestFinished(async () => {
    await run(END);
    rmSync(home, { recursive: true });
  });
  const [serverPort, pagePort] = [await freePort(), await freePort()];
  const script = handOver({ page, serverPort, pagePort });
  return { env, home, place: join(home, ".cache/svc-screen"), seen: () => readFileSync(env.SEEN, "utf8"), run, script };
}

const DESKTOP = { "bin/x11vnc": SERVER, "noVNC/utils/novnc_proxy": SERVER, "bin/scrot": PICTURE };

/** One that has ended has a number until its parent asks, which on this machine may be later. */
function isAlive(pid: string): boolean {
  const file = `/proc/${pid.trim()}/status`;
  return existsSync(file) && !/^State:\s*[ZX]/m.test(readFileSync(file, "utf8"));
}

test("a picture of the screen is printed, and no file of it stays", async () => {
  const { run, home } = await desktop(DESKTOP);
  const { stdout } = await run(`TMPDIR=${home}/bin; export TMPDIR\n${TAKE_PICTURE}`);
  expect(stdout).toBe("a picture of :7");
  expect(readdirSync(join(home, "bin")).sort()).toEqual(["scrot", "x11vnc"]);
});

test("a sandbox without the programs of a desktop has no screen", async () => {
  const { run, script } = await desktop({ "bin/nothing": "" });
  await expect(run(TAKE_PICTURE)).rejects.toMatchObject({ code: NO_SCREEN });
  await expect(run(script)).rejects.toMatchObject({ code: NO_SCREEN });
  await expect(run(viewer(false))).rejects.toMatchObject({ code: NO_SCREEN });
});

/** The program behind the live screen, and what it has printed. */
async function shown(takesOver: boolean) {
  const { env, seen } = await desktop(DESKTOP);
  const program = spawn("/bin/bash", ["-c", viewer(takesOver)], { env, cwd: "/" });
  onTestFinished(() => void program.kill("SIGKILL"));
  const printed = { out: "", errors: "" };
  program.stdout.on("data", (data) => void (printed.out += String(data)));
  program.stderr.on("data", (data) => void (printed.errors += String(data)));
  const ended = once(program, "close") as Promise<[code: number | null]>;
  await expect.poll(() => printed.out, { timeout: 30_000 }).toBe("RFB");
  return { program, printed, ended, seen };
}

test("a live screen is a connection of the server's own, which listens nowhere, has no clipboard and takes no input of who watches", async () => {
  const watching = await shown(false);
  expect(watching.seen()).toMatch(/^screen-viewer -inetd -display :7 .*-nosel .*-viewonly -o \S+$/m);
  const taking = await shown(true);
  expect(taking.seen()).not.toContain("-viewonly");
  taking.program.stdin.write("key");
  await expect.poll(() => taking.printed.out, { timeout: 30_000 }).toBe("RFBgot key");
});

test("a live screen ends with the page, with its server and by a signal, and leaves nothing running", async () => {
  const left = await shown(true);
  left.program.stdin.end();
  await left.ended;
  await expect.poll(left.seen).toContain("alone");
  const served = await shown(true);
  served.program.stdin.write("quit");
  expect(await served.ended).toEqual([4, null]);
  expect(served.printed.errors).toBe("the display has ended");
  const killed = await shown(false);
  killed.program.kill("SIGTERM");
  expect(await killed.ended).toEqual([0, null]);
  await expect.poll(killed.seen).toContain("alone");
});

test("a screen that is handed over has two passwords, which are in no argument and in no file afterwards", async () => {
  const { run, script, seen, place } = await desktop(DESKTOP);
  const { takes, watches } = passwordsOf((await run(script)).stdout);
  expect(takes).not.toBe(watches);
  // The two programs start side by side.
  expect(seen()).toMatch(/^screen-server :7 .*-display :7 -rfbport \d+ -localhost .*-passwdfile rm:passwords$/m);
  expect(seen()).toContain(`600 ${JSON.stringify(`${takes}\n__BEGIN_VIEWONLY__\n${watches}\n`)}\n`);
  expect(seen()).toMatch(/^novnc_proxy :7 --vnc 127\.0\.0\.1:\d+ --listen \d+ --web /m);
  expect(readdirSync(place)).not.toContain("passwords");
  for (const name of readdirSync(place)) expect(readFileSync(join(place, name), "utf8")).not.toContain(takes);
});

test("a second hand-over ends the first one, and the end leaves nothing running", async () => {
  const { run, script, place } = await desktop(DESKTOP);
  const first = passwordsOf((await run(script)).stdout);
  const pids = () => ["screen-server", "novnc_proxy"].map((name) => readFileSync(join(place, `${name}.pid`), "utf8"));
  const before = pids();
  const second = passwordsOf((await run(script)).stdout);
  expect(second.takes).not.toBe(first.takes);
  const after = pids();
  expect([...before.map(isAlive), ...after.map(isAlive)]).toEqual([false, false, true, true]);
  await run(END);
  expect(after.map(isAlive)).toEqual([false, false]);
});

test("the end leaves a process alone that has the number of one which is gone", async () => {
  const { run, script, place } = await desktop(DESKTOP);
  await run(script);
  await run(END);
  const { stdout: other } = await run("setsid sleep 60 >/dev/null 2>&1 & echo $!");
  onTestFinished(() => void spawnSync("kill", [other.trim()]));
  writeFileSync(join(place, "screen-server.pid"), other);
  await run(END);
  expect(isAlive(other)).toBe(true);
});

test("a hand-over whose server does not start says why", async () => {
  const broken = "#!/bin/sh\necho 'no such display' >&2\nexit 1\n";
  const { run, script } = await desktop({ ...DESKTOP, "bin/x11vnc": broken });
  // The waits of the script are longer than this test needs.
  await expect(run(script.replace("seq 100", "seq 5"))).rejects.toMatchObject({
    code: 4,
    stderr: expect.stringContaining("no such display") as string,
  });
});
