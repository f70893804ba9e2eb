/**
 * Measures `POST /v2/sandboxes` alone, on a connection that is kept open, with a full pool. The baseline is the API's
 * cheapest answer on the same connection.
 */

import { api, type Platform } from "../support/platform/platform.ts";
import { type Bench, POOL, timed, untilPoolHolds } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const WARM_UP_ROUNDS = 3;

export async function rawCreate({ platform, quick, say }: Bench): Promise<readonly Row[]> {
  const rounds = quick ? 5 : 40;
  const mine: number[] = [];
  const cheapest: number[] = [];
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    say(`raw create: ${round + 1} of ${rounds}`);
    await untilPoolHolds(platform, POOL);
    // The first request opens the connection again where it was closed during the wait.
    await api(platform, "GET", "/health");
    const health = await timed(() => api(platform, "GET", "/health"));
    const created = await create(platform);
    if (round < 0) continue;
    cheapest.push(health);
    mine.push(created);
  }
  return [
    row({
      name: "raw create, POST /v2/sandboxes",
      unit: "ms",
      ours: summarise(mine),
      baseline: { name: "GET /health", ...summarise(cheapest) },
      budgets: [],
    }),
  ];
}

/** Milliseconds of one create; removes the sandbox. */
async function create(platform: Platform): Promise<number> {
  const started = performance.now();
  const reply = await api(platform, "POST", "/v2/sandboxes", { body: { templateID: "base", timeout: 120 } });
  const took = performance.now() - started;
  if (reply.status !== 201) throw new Error(`a create was answered with ${reply.status}: ${reply.text}`);
  await api(platform, "DELETE", `/sandboxes/${(reply.json as { sandboxID: string }).sandboxID}`);
  return took;
}
