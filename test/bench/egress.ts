/**
 * Measures the ways out of a sandbox beside Docker's plain bridge, in turns in one run: throughput, time to the first byte,
 * policy updates, many connections at once.
 */

import { ALL_TRAFFIC, Sandbox, type SandboxNetworkOpts } from "e2b";
import { ADDRESS, PORT, SOCKS_PORT } from "../support/internet/plan.ts";
import { startInternet } from "../support/internet/start.ts";
import { settingOf } from "../support/platform/programs.ts";
import { dockerRun } from "./baselines/docker.ts";
import { type Bench, timed } from "./bench.ts";
import { type Budget, type Row, row, type Summary, summarise } from "./numbers.ts";
import { rewritten } from "./rewritten.ts";

const MB = 1 << 20;
const DENY_ALL = { denyOut: [ALL_TRAFFIC] };

interface Path {
  readonly name: string;
  readonly host: string;
  readonly network: SandboxNetworkOpts;
  readonly budgets: (ratio: number, latency: Summary) => { speed: Budget[]; latency: Budget[] };
}

const none = () => ({ speed: [], latency: [] });
const PATHS: readonly Path[] = [
  {
    name: "addresses only",
    host: ADDRESS.echo,
    network: { allowOut: [ADDRESS.echo], ...DENY_ALL },
    budgets: (value) => ({ speed: [{ says: "≥ 0.95 x", value, limit: 0.95, better: "more" }], latency: [] }),
  },
  {
    name: "domains",
    host: "echo.example",
    network: { allowOut: ["echo.example"], ...DENY_ALL },
    budgets: (value) => ({ speed: [{ says: "≥ 0.4 x", value, limit: 0.4, better: "more" }], latency: [] }),
  },
  {
    name: "SOCKS5",
    host: ADDRESS.echo,
    network: { egressProxy: { address: `${ADDRESS.socks}:${SOCKS_PORT}` } },
    budgets: none,
  },
  {
    name: "transform",
    host: "api.example",
    network: { rules: { "api.example": [{ transform: { headers: { "x-rule": "bench" } } }] } },
    budgets: (_, { p99, p50 }) => ({
      speed: [],
      latency: [{ says: "p99 ≤ 3 x p50", value: p99 / p50, limit: 3, better: "less" }],
    }),
  },
];

/** Runs a Python program at the place that needs the bytes, and reads the figures that it prints. */
type Run = (program: string) => Promise<readonly number[]>;

export async function egress({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  if (settingOf(platform, "agent", "SVC_DNS_UPSTREAM") !== ADDRESS.dns) {
    throw new Error("this platform does not live on the test internet: test/support/internet/configure.ts");
  }
  const internet = await startInternet(platform.instance);
  const plain = await dockerRun();
  const sandboxes: Sandbox[] = [];
  try {
    for (const { network } of PATHS) sandboxes.push(await Sandbox.create({ timeoutMs: 1_800_000, network }));
    const runs: readonly { readonly run: Run; readonly host: string }[] = [
      { run: async (program) => figures(await plain.exec("python3", "-c", program)), host: ADDRESS.echo },
      ...PATHS.map(({ host }, index) => ({ run: inside(sandboxes[index]), host })),
    ];
    const speeds: number[][] = runs.map(() => []);
    const latencies: number[][] = runs.map(() => []);
    const size = (quick ? 50 : 200) * MB;
    for (let round = 0; round < (quick ? 2 : 7); round++) {
      say(`egress: round ${round + 1}`);
      for (const [index, { run, host }] of runs.entries()) {
        speeds[index]?.push(...(await run(download(host, size))));
        latencies[index]?.push(...(await run(firstBytes(host, quick ? 20 : 100))));
      }
    }
    const [plainSpeed, ...ourSpeeds] = speeds.map(summarise);
    const [plainLatency, ...ourLatencies] = latencies.map(summarise);
    if (plainSpeed === undefined || plainLatency === undefined) throw new Error("no baseline");
    const rows = PATHS.flatMap(({ name, budgets }, index) => {
      const speed = ourSpeeds[index] ?? plainSpeed;
      const latency = ourLatencies[index] ?? plainLatency;
      const judged = budgets(speed.p50 / plainSpeed.p50, latency);
      const bridge = "Docker's bridge";
      return [
        row({
          name: `egress, ${name}: download of ${size / MB} MB`,
          unit: "MB/s",
          ours: speed,
          baseline: { name: bridge, ...plainSpeed },
          budgets: judged.speed,
        }),
        row({
          name: `egress, ${name}: connect to first byte`,
          unit: "ms",
          ours: latency,
          baseline: { name: bridge, ...plainLatency },
          budgets: judged.latency,
        }),
      ];
    });
    say("egress: updates and crowds");
    return [...rows, await updates(quick), ...(await crowds(runs, sandboxes)), ...(await rewritten({ quick, say }))];
  } finally {
    await Promise.all(sandboxes.map((sandbox) => sandbox.kill()));
    await plain.remove();
    await internet.stop();
  }
}

/** Measures the replacement of a thousand ranges that cannot be merged by another thousand. */
async function updates(quick: boolean): Promise<Row> {
  const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
  try {
    const samples: number[] = [];
    for (let round = 0; round < (quick ? 3 : 15); round++) {
      const allowOut = Array.from({ length: 1000 }, (_, i) => `20.${(i >> 7) + 8 * (round % 2)}.${(i & 127) * 2}.0/24`);
      samples.push(await timed(() => sandbox.updateNetwork({ allowOut, ...DENY_ALL })));
    }
    return row({ name: "update to 1 000 ranges", unit: "ms", ours: summarise(samples), budgets: [] });
  } finally {
    await sandbox.kill();
  }
}

/** Measures a thousand connections that are open at once, and sends one byte there and back on each. */
async function crowds(runs: readonly { readonly run: Run }[], sandboxes: readonly Sandbox[]): Promise<readonly Row[]> {
  const program = `import socket, time
started = time.perf_counter()
held = [socket.create_connection(("${ADDRESS.echo}", ${PORT.bulk}), 20) for _ in range(1000)]
for s in held: s.settimeout(20); s.sendall(b"echo\\nx")
back = sum(1 for s in held if s.recv(1) == b"x")
print((time.perf_counter() - started) * 1000 if back == 1000 else -back)`;
  const [plain] = (await runs[0]?.run(program)) ?? [];
  const rows: Row[] = [];
  // The kernel alone decides by address. With domains allowed beside the address, the egress process decides.
  for (const [name, index, allowOut] of [
    ["addresses only", 0, [ADDRESS.echo]],
    ["domains", 1, ["echo.example", ADDRESS.echo]],
  ] as const) {
    await sandboxes[index]?.updateNetwork({ allowOut: [...allowOut], ...DENY_ALL });
    const [took = Number.NaN] = (await runs[index + 1]?.run(program)) ?? [];
    if (took < 0) throw new Error(`${name}: only ${-took} of 1000 connections worked`);
    const baseline = { name: "Docker's bridge", ...summarise([plain ?? Number.NaN]) };
    rows.push(
      row({ name: `1 000 connections at once, ${name}`, unit: "ms", ours: summarise([took]), baseline, budgets: [] }),
    );
  }
  return rows;
}

function inside(sandbox: Sandbox | undefined): Run {
  return async (program) => {
    if (sandbox === undefined) throw new Error("no sandbox");
    await sandbox.files.write("/tmp/bench.py", program);
    const command = "ulimit -n 4096; python3 /tmp/bench.py";
    return figures((await sandbox.commands.run(command, { timeoutMs: 300_000 })).stdout);
  };
}

function figures(text: string): readonly number[] {
  return text.trim().split("\n").map(Number);
}

function request(host: string, path: string): string {
  return `s = socket.create_connection(("${host}", 80), 20); s.settimeout(20)
s.sendall(b"GET ${path} HTTP/1.1\\r\\nHost: ${host}\\r\\nConnection: close\\r\\n\\r\\n")`;
}

function download(host: string, size: number): string {
  return `import socket, time
started = time.perf_counter()
${request(host, `/bytes/${size}`)}
b = bytearray(1 << 18); n = 0
while True:
  k = s.recv_into(b)
  if k == 0: break
  n += k
if n < ${size}: raise SystemExit("cut after %d" % n)
print(n / ${MB} / (time.perf_counter() - started))`;
}

function firstBytes(host: string, count: number): string {
  const lines = request(host, "/").replaceAll("\n", "\n  ");
  return `import socket, time
for _ in range(${count}):
  started = time.perf_counter()
  ${lines}
  s.recv(1); print((time.perf_counter() - started) * 1000)
  s.close()`;
}
