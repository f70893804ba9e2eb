/** Measures a hundred megabytes up and down through the SDK, beside the same bytes over plain loopback HTTP. */

import { randomBytes } from "node:crypto";
import { Sandbox } from "e2b";
import { startPlainServer } from "./baselines/plain-server.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const MB = 1 << 20;

export async function transfer({ quick, say }: Bench): Promise<readonly Row[]> {
  const size = (quick ? 20 : 100) * MB;
  const rounds = quick ? 2 : 7;
  const blob = new Blob([randomBytes(size)]);
  const speeds = { up: [] as number[], down: [] as number[], plainUp: [] as number[], plainDown: [] as number[] };
  const server = await startPlainServer(size);
  const sandbox = await Sandbox.create({ timeoutMs: 600_000 });
  const rate = (ms: number) => size / MB / (ms / 1000);
  try {
    for (let round = -1; round < rounds; round++) {
      say(`files up and down: ${round + 1} of ${rounds}`);
      const up = await timed(() => sandbox.files.write("/tmp/bench", blob, { useOctetStream: true }));
      const plainUp = await timed(() => post(server.url, blob));
      const down = await timed(async () => drain(await sandbox.files.read("/tmp/bench", { format: "stream" }), size));
      const plainDown = await timed(async () => drain((await fetch(server.url)).body, size));
      // The first round only warms both sides up.
      if (round < 0) continue;
      speeds.up.push(rate(up));
      speeds.plainUp.push(rate(plainUp));
      speeds.down.push(rate(down));
      speeds.plainDown.push(rate(plainDown));
    }
  } finally {
    await sandbox.kill();
    server.stop();
  }
  return [
    line(`upload of ${size / MB} MB`, speeds.up, speeds.plainUp),
    line(`download of ${size / MB} MB`, speeds.down, speeds.plainDown),
  ];
}

function line(name: string, mine: readonly number[], plain: readonly number[]): Row {
  const ours = summarise(mine);
  const baseline = { name: "plain loopback HTTP", ...summarise(plain) };
  return row({
    name,
    unit: "MB/s",
    ours,
    baseline,
    budgets: [{ says: "≥ 0.6 x", value: ours.p50 / baseline.p50, limit: 0.6, better: "more" }],
  });
}

async function post(url: string, body: Blob): Promise<void> {
  const response = await fetch(url, { method: "POST", body });
  await response.text();
}

async function drain(
  stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array> | null,
  size: number,
): Promise<void> {
  let seen = 0;
  for await (const chunk of stream ?? []) seen += chunk.length;
  if (seen !== size) throw new Error(`${seen} bytes came back instead of ${size}`);
}
