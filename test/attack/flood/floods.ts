/** The floods: what many clients, or many sandboxes, do at once. All their traffic stays on this machine. */

import { connect, type Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { Sandbox } from "e2b";
import type { Platform } from "../../support/platform/platform.ts";
import { decisionFlood, dnsFlood, halfHandshakes, PORTS } from "./hostile-server.ts";

export interface World {
  readonly platform: Platform;
  /** The sandbox that runs the hostile server. */
  readonly target: Sandbox;
  /** Sandboxes whose connections the egress process decides. */
  readonly crowd: readonly Sandbox[];
}

interface Flood {
  readonly name: string;
  /** Resolves when the whole flood is under way. Aborting `over` closes what the flood opened. */
  readonly begin: (world: World, over: AbortSignal) => Promise<void>;
}

/** How long programs in a sandbox keep up a flood, in seconds. */
const SECONDS = 6;

interface Clients {
  readonly url: string;
  readonly count: number;
  readonly say: string;
  /** A text that each connection repeats, at this interval, or without an interval as fast as the server reads. */
  readonly again?: { readonly text: string; readonly everyMs?: number };
  readonly reads: boolean;
}

/** Opens connections that send `say`, and that then read their answers or do not. */
async function clients({ url, count, say, again, reads }: Clients, over: AbortSignal): Promise<void> {
  const { hostname: host, port } = new URL(url);
  const opened = Array.from({ length: count }, () => {
    const socket = connect({ host, port: Number(port) });
    socket.on("error", () => undefined);
    over.addEventListener("abort", () => socket.destroy(), { once: true });
    if (reads) socket.resume();
    else socket.pause();
    socket.write(say);
    if (again !== undefined) repeat(socket, again);
    return new Promise<void>((resolve) => socket.once("connect", resolve).once("close", () => resolve()));
  });
  await Promise.all(opened);
}

function repeat(socket: Socket, { text, everyMs }: NonNullable<Clients["again"]>): void {
  if (everyMs !== undefined) {
    const timer = setInterval(() => socket.write(text), everyMs);
    socket.once("close", () => clearInterval(timer));
    return;
  }
  const go = () => {
    while (!socket.destroyed && socket.write(text));
  };
  socket.on("drain", go);
  socket.once("connect", go);
}

const toPort = ({ target }: World, port: number) =>
  `GET / HTTP/1.1\r\nHost: edge\r\nE2b-Sandbox-Id: ${target.sandboxId}\r\nE2b-Sandbox-Port: ${port}\r\n\r\n`;

const answers = (name: string, port: number): Flood => ({
  name,
  begin: (world, over) =>
    clients({ url: world.platform.sandboxUrl, count: 40, say: toPort(world, port), reads: false }, over),
});

/** Starts a program in sandboxes and does not wait for its end. */
async function inside(sandboxes: readonly Sandbox[], program: string, over: AbortSignal): Promise<void> {
  await Promise.all(
    sandboxes.map(async (sandbox) => {
      await sandbox.files.write("/tmp/flood.py", program);
      const handle = await sandbox.commands.run("python3 /tmp/flood.py", { background: true, timeoutMs: 60_000 });
      over.addEventListener("abort", () => void handle.kill().catch(() => false), { once: true });
    }),
  );
}

const POST = "POST /v2/sandboxes HTTP/1.1\r\nHost: api\r\nContent-Type: application/json\r\n";
const PIECE = "a".repeat(16_384);

export const floods: readonly Flood[] = [
  answers("informational answers without end, 40 clients that do not read", PORTS.hints),
  answers("bodies without end, 40 clients that do not read", PORTS.body),
  answers("headers without end from a sandbox, 40 clients", PORTS.headers),
  answers("trailers without end from a sandbox, 40 clients", PORTS.trailers),
  {
    name: "headers without end to edge and API, 40 clients each",
    async begin({ platform: { apiUrl, sandboxUrl } }, over) {
      const again = { text: `X-A: ${"a".repeat(100)}\r\n`.repeat(100) };
      for (const url of [apiUrl, sandboxUrl])
        await clients({ url, count: 40, say: "GET / HTTP/1.1\r\nHost: x\r\n", again, reads: false }, over);
    },
  },
  {
    name: "bodies without a key to the API, 100 clients",
    begin: ({ platform: { apiUrl: url } }, over) =>
      clients(
        { url, count: 100, say: `${POST}Content-Length: 99999999\r\n\r\n`, again: { text: PIECE }, reads: false },
        over,
      ),
  },
  {
    name: "bodies with a key to the API that trickle, 300 clients",
    begin: ({ platform: { apiUrl: url, apiKey } }, over) =>
      clients(
        {
          url,
          count: 300,
          say: `${POST}X-Api-Key: ${apiKey}\r\nContent-Length: 60000\r\n\r\n{`,
          again: { text: " ", everyMs: 200 },
          reads: true,
        },
        over,
      ),
  },
  {
    name: "idle keep-alives at edge and API, 500 clients each",
    async begin({ platform: { apiUrl, sandboxUrl } }, over) {
      for (const url of [apiUrl, sandboxUrl])
        await clients({ url, count: 500, say: "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", reads: true }, over);
    },
  },
  {
    name: "connections to the edge that say nothing, 1000",
    begin: ({ platform: { sandboxUrl: url } }, over) => clients({ url, count: 1_000, say: "", reads: true }, over),
  },
  {
    name: "questions for names from a sandbox, by datagram and byte by byte",
    begin: ({ crowd }, over) => inside(crowd.slice(0, 1), dnsFlood(SECONDS), over),
  },
  {
    name: "half handshakes of TLS and SOCKS from every sandbox, 200 each",
    begin: ({ crowd }, over) => inside(crowd, halfHandshakes(SECONDS), over),
  },
  {
    name: "decisions for the log",
    begin: ({ crowd }, over) => inside(crowd, decisionFlood(SECONDS), over),
  },
  {
    name: "output of a process that is not read, 20 times",
    async begin({ target }, over) {
      const handles = await Promise.all(
        Array.from({ length: 20 }, () => target.commands.run("yes flood", { background: true, timeoutMs: 60_000 })),
      );
      await Promise.all(handles.map((handle) => handle.disconnect()));
      over.addEventListener("abort", () => void target.commands.run("pkill yes").catch(() => undefined), {
        once: true,
      });
    },
  },
];

/** Checks that other clients are served meanwhile: the API answers, and a command runs. */
export async function othersAreServed({ target }: World): Promise<boolean> {
  const limit = AbortSignal.timeout(30_000);
  const served = (async () => {
    await Sandbox.getInfo(target.sandboxId, { requestTimeoutMs: 30_000 });
    return (await target.commands.run("echo served", { timeoutMs: 30_000 })).stdout === "served\n";
  })();
  served.catch(() => false);
  const late = wait(30_000, false, { signal: limit }).catch(() => false);
  return Promise.race([served.catch(() => false), late]);
}
