/**
 * A client that keeps streams open to sandboxes of a system: the output of a command, a download and a WebSocket of a server there, for
 * each sandbox that it is given. It opens one that ends again, as clients do. Runs in the system's network; its environment has the
 * platform's addresses and key. Says `open` when all of them bring something, and answers each line with a `Report`.
 */

import { randomBytes } from "node:crypto";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { Sandbox } from "e2b";
import { serverScript } from "../sandbox/in-sandbox-server.ts";
import type { Cut, Report } from "./streams.ts";

const HOURS_MS = 6 * 3_600_000;
const PORT = 8080;
const TICKS = "while :; do echo tick; sleep 0.2; done";
const TICK_MS = 200;
/** Each stream brings something five times a second; a busy machine needs longer. */
const QUIET_MS = 1_000;
const AGAIN_MS = 100;
/** A text frame of one letter, whose mask is zero. */
const FRAME = Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x78]);

interface Stream {
  readonly name: string;
  /** When it brought something last. */
  last: number | undefined;
  /** How often it was tried again since then, and why at first. */
  tries: number;
  why: string;
}

/** Opens a stream, and resolves or rejects when it has ended. */
type Open = (onData: () => void) => Promise<unknown>;

const edge = new URL(process.env["E2B_SANDBOX_URL"] ?? "");
const streams: Stream[] = [];
const cuts: Cut[] = [];
const quiet = () => streams.filter(({ last }) => last === undefined || performance.now() - last > QUIET_MS);

createInterface({ input: process.stdin })
  .on("line", () => {
    const report: Report = { streams: streams.length, quiet: quiet().map(({ name, why }) => `${name}: ${why}`), cuts };
    process.stdout.write(`${JSON.stringify(report)}\n`);
  })
  .on("close", () => process.exit(0));

for (const id of process.argv.slice(2)) {
  const sandbox = await Sandbox.connect(id, { timeoutMs: HOURS_MS });
  await sandbox.files.write("/tmp/server.py", serverScript);
  const server = await sandbox.commands.run(`python3 /tmp/server.py ${PORT} 0.0.0.0`, {
    background: true,
    timeoutMs: 0,
  });
  await server.disconnect();
  void keepOpen(`command in ${id}`, command(sandbox));
  void keepOpen(`download from ${id}`, download(id));
  void keepOpen(`WebSocket to ${id}`, webSocket(id));
}
while (quiet().length > 0) await delay(AGAIN_MS);
// What was refused before the servers listened.
cuts.length = 0;
process.stdout.write("open\n");

async function keepOpen(name: string, open: Open): Promise<void> {
  const stream: Stream = { name, last: undefined, tries: 0, why: "" };
  streams.push(stream);
  for (;;) {
    const why = await open(() => heard(stream)).then(() => "it ended", String);
    if (stream.tries === 0) stream.why = why;
    stream.tries++;
    await delay(AGAIN_MS);
  }
}

function heard(stream: Stream): void {
  const now = performance.now();
  const ms = Math.round(now - (stream.last ?? now));
  if (stream.tries > 0 || ms > QUIET_MS) cuts.push({ stream: stream.name, ms, tries: stream.tries, why: stream.why });
  stream.last = now;
  stream.tries = 0;
  stream.why = "";
}

/** The same command each time: it runs on without its client. */
function command(sandbox: Sandbox): Open {
  let pid: number | undefined;
  return async (onStdout) => {
    const options = { timeoutMs: 0, onStdout };
    const handle =
      pid === undefined
        ? await sandbox.commands.run(TICKS, { ...options, background: true })
        : await sandbox.commands.connect(pid, options);
    pid = handle.pid;
    await handle.wait();
  };
}

function to(id: string, path: string, headers: Readonly<Record<string, string>> = {}) {
  const host = `${PORT}-${id}.localhost`;
  return request({ host: edge.hostname, port: edge.port, path, headers: { host, ...headers }, agent: false });
}

function download(id: string): Open {
  return (onData) =>
    new Promise((resolve, reject) => {
      const asked = to(id, "/forever").on("error", reject);
      asked.on("response", (answer) => {
        answer.on("error", reject).on("close", () => resolve(undefined));
        if (answer.statusCode === 200) answer.on("data", onData);
        else reject(new Error(`${answer.statusCode}`));
        answer.resume();
      });
      asked.end();
    });
}

function webSocket(id: string): Open {
  return (onData) =>
    new Promise((resolve, reject) => {
      const asked = to(id, "/", {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-key": randomBytes(16).toString("base64"),
        "sec-websocket-version": "13",
      });
      asked.on("error", reject).on("response", (answer) => {
        answer.resume();
        reject(new Error(`${answer.statusCode}`));
      });
      asked.on("upgrade", (_, socket) => {
        const sending = setInterval(() => socket.write(FRAME), TICK_MS);
        socket.on("error", reject).on("data", onData);
        socket.on("close", () => {
          clearInterval(sending);
          resolve(undefined);
        });
      });
      asked.end();
    });
}
