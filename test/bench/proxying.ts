/**
 * Measures the edge beside nginx, both in front of one server in one sandbox: requests a second, and the time that each
 * proxy adds.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "e2b";
import { run } from "../support/platform/programs.ts";
import { until } from "../support/runner/until.ts";
import { startLibraryProxy } from "./baselines/library-proxy.ts";
import type { Bench } from "./bench.ts";
import { type LoadTarget, load } from "./load.ts";
import { type Row, row, summarise } from "./numbers.ts";

const PORT = 8000;
const CONNECTIONS = 32;

/** The backend runs on envd's own Node, which every sandbox has. */
const BACKEND = `
const body = Buffer.from("hello from the sandbox");
require("node:http").createServer({ keepAliveTimeout: 60000 }, (request, response) => {
  response.writeHead(200, { "content-type": "text/plain", "content-length": body.length });
  response.end(body);
}).listen(${PORT}, "0.0.0.0");
`;

export async function proxying({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const address = await startBackend(sandbox);
  const nginx = await startNginx(`${address}:${PORT}`);
  const library = await startLibraryProxy(`${address}:${PORT}`);
  try {
    const edge = new URL(platform.sandboxUrl);
    const routing = `E2b-Sandbox-Id: ${sandbox.sandboxId}\r\nE2b-Sandbox-Port: ${PORT}\r\n`;
    const request = (headers: string) => `GET / HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`;
    const direct: LoadTarget = { host: address, port: PORT, request: request("") };
    const byNginx: LoadTarget = { host: "127.0.0.1", port: nginx.port, request: request("") };
    const byEdge: LoadTarget = { host: edge.hostname, port: Number(edge.port), request: request(routing) };
    const byLibrary: LoadTarget = { host: "127.0.0.1", port: library.port, request: request("") };
    const targets = [direct, byNginx, byEdge] as const;
    for (const target of [...targets, byLibrary]) await load(target, CONNECTIONS, 1000);
    return [
      await throughput([...targets, byLibrary], quick ? 1 : 5, say),
      await addedLatency(targets, quick ? 200 : 3000, say),
    ];
  } finally {
    library.stop();
    await nginx.stop();
    await sandbox.kill();
  }
}

type Targets = readonly [LoadTarget, LoadTarget, LoadTarget];

async function throughput(
  [direct, byNginx, byEdge, byLibrary]: readonly [...Targets, LoadTarget],
  rounds: number,
  say: Bench["say"],
): Promise<Row> {
  const rates = { direct: [] as number[], nginx: [] as number[], edge: [] as number[], library: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    say(`proxying, ${CONNECTIONS} connections: ${round + 1} of ${rounds}`);
    rates.nginx.push((await load(byNginx, CONNECTIONS, 3000)).perSecond);
    rates.edge.push((await load(byEdge, CONNECTIONS, 3000)).perSecond);
    rates.direct.push((await load(direct, CONNECTIONS, 1000)).perSecond);
    rates.library.push((await load(byLibrary, CONNECTIONS, 1000)).perSecond);
  }
  const ours = summarise(rates.edge);
  const baseline = { name: "nginx, one worker", ...summarise(rates.nginx) };
  return row({
    name: `edge, ${CONNECTIONS} connections`,
    unit: "req/s",
    ours,
    baseline,
    budgets: [{ says: "≥ 0.45 x", value: ours.p50 / baseline.p50, limit: 0.45, better: "more" }],
    note:
      `the same server reached directly: ${Math.round(summarise(rates.direct).p50)} req/s, ` +
      `through the library http-proxy: ${Math.round(summarise(rates.library).p50)} req/s`,
  });
}

async function addedLatency(targets: Targets, milliseconds: number, say: Bench["say"]): Promise<Row> {
  say("proxying, one connection");
  const latencies: [number[], number[], number[]] = [[], [], []];
  // The three take turns, so that a busy moment of the machine hits all of them.
  for (let round = 0; round < 5; round++) {
    for (const index of [0, 1, 2] as const) {
      latencies[index].push(...(await load(targets[index], 1, milliseconds / 5)).latencies);
    }
  }
  const [direct, nginx, edge] = latencies.map((list) => summarise(list.slice(10)));
  if (direct === undefined || nginx === undefined || edge === undefined) throw new Error("nothing was measured");
  return row({
    name: "edge, one connection",
    unit: "ms",
    ours: edge,
    baseline: { name: "nginx, one worker", ...nginx },
    budgets: [{ says: "≤ 0.4 ms added to p50", value: edge.p50 - direct.p50, limit: 0.4, better: "less" }],
    note: `the same server reached directly: p50 ${direct.p50.toFixed(3)} ms`,
  });
}

async function startBackend(sandbox: Sandbox): Promise<string> {
  await sandbox.files.write("/tmp/backend.cjs", BACKEND);
  const node = "/svc/lib/loader --library-path /svc/lib /svc/node";
  await sandbox.commands.run(`exec ${node} /tmp/backend.cjs`, { background: true, timeoutMs: 0 });
  await sandbox.commands.run(`until ss -Htln sport = :${PORT} | grep -q .; do sleep 0.05; done`);
  return (await sandbox.commands.run("ip -4 -o addr show dev eth0 | awk '{print $4}' | cut -d/ -f1")).stdout.trim();
}

async function startNginx(upstream: string): Promise<{ port: number; stop(): Promise<void> }> {
  await installNginx();
  const directory = await mkdtemp(join(tmpdir(), "bench-nginx-"));
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  await writeFile(join(directory, "nginx.conf"), nginxConf(directory, port, upstream));
  const child = spawn(
    "nginx",
    ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", join(directory, "error.log")],
    {
      stdio: "inherit",
    },
  );
  const stop = async () => {
    await ended(child);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await untilOpen(port, child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}

/** Installs nginx from the machine's own package sources, the first time. */
async function installNginx(): Promise<void> {
  const there = await run("nginx", ["-v"]).then(
    () => true,
    () => false,
  );
  if (there) return;
  // The package does not start nginx as a service: the bench starts its own.
  await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "nginx-light"], {
    DEBIAN_FRONTEND: "noninteractive",
    RUNLEVEL: "1",
  });
}

function nginxConf(directory: string, port: number, upstream: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `  ${name}_temp_path ${directory}/${name};`,
  );
  return `daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
user root;
events { worker_connections 1024; }
http {
${temporary.join("\n")}
  access_log off;
  keepalive_requests 100000000;
  upstream sandbox { server ${upstream}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://sandbox;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  const isOpen = async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    return new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      });
      socket.once("error", () => resolve(false));
    });
  };
  await until(isOpen, { what: "nginx listening", timeoutMs: 5000 });
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGQUIT");
  });
}
