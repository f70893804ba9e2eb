/** Measures one command in a running sandbox through the SDK, beside `docker exec`. */

import { Sandbox } from "e2b";
import { dockerRun } from "./baselines/docker.ts";
import { type Bench, timed } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

export async function execRoundTrip({ quick, say }: Bench): Promise<readonly Row[]> {
  const rounds = quick ? 4 : 30;
  const mine: number[] = [];
  const docker: number[] = [];
  say("exec round trips");
  const sandbox = await Sandbox.create({ timeoutMs: 300_000 });
  const container = await dockerRun();
  try {
    for (let warm = 0; warm < 5; warm++) await sandbox.commands.run("true");
    for (let round = 0; round < rounds; round++) {
      for (let more = 0; more < 4; more++) mine.push(await timed(() => sandbox.commands.run("true")));
      docker.push(await timed(() => container.exec("true")));
    }
  } finally {
    await sandbox.kill();
    await container.remove();
  }
  return [
    row({
      name: "exec round trip, bash -l -c true",
      unit: "ms",
      ours: summarise(mine),
      baseline: { name: "docker exec true", ...summarise(docker) },
      budgets: [],
    }),
  ];
}
