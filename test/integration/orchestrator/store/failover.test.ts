/**
 * The database server of two orchestrators is killed while they serve requests, and its standby is promoted: what has been
 * acknowledged is there afterwards, and both orchestrators go on with no help.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Pair, startPair } from "../../../support/cluster/pair.ts";
import { type StandbyPair, startStandbyPair } from "../../../support/postgres/standby.ts";
import { until } from "../../../support/runner/until.ts";

const WRITERS = 4;
/** Creates that are acknowledged before the failover, and after it. */
const EACH = 20;

let servers: StandbyPair;
let pair: Pair;
const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  servers = await startStandbyPair();
  stops.unshift(() => servers.stop());
  const unreachable = () => Promise.reject(new Error("this test asks the orchestrators only"));
  pair = await startPair({
    database: { place: servers.url, query: unreachable, stored: unreachable, drop: () => Promise.resolve() },
    // A create whose orchestrator could not record its end is ended after this time and some slack.
    settings: { SVC_PLACEMENT_TIMEOUT_MS: "5000", SVC_START_TIMEOUT_MS: "4000" },
  });
  stops.unshift(() => pair.stop());
}, 180_000);
afterAll(async () => {
  for (const stop of stops) await stop();
}, 60_000);

test("a failover to the standby loses no acknowledged create and no acknowledged kill", async () => {
  const seen = { kept: new Set<string>(), killed: new Set<string>(), unknown: 0, stop: false };

  /** Creates sandboxes at both in turn, and kills every third one. An answer that does not come promises nothing. */
  async function write(writer: number): Promise<void> {
    for (let turn = writer; !seen.stop; turn++) {
      const by = turn % 2 === 0 ? 0 : 1;
      const made = await pair
        .ask(by, "POST", "/v2/sandboxes", { templateID: "base", timeout: 3_600 })
        .catch(() => undefined);
      if (made?.status !== 201) {
        seen.unknown++;
        continue;
      }
      const { sandboxID } = made.body as { sandboxID: string };
      if (turn % 3 !== 0) seen.kept.add(sandboxID);
      else {
        const killed = await pair.ask(by, "DELETE", `/sandboxes/${sandboxID}`).catch(() => undefined);
        if (killed?.status === 204) seen.killed.add(sandboxID);
        else seen.unknown++;
      }
    }
  }

  const writing = Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  const acknowledged = () => seen.kept.size + seen.killed.size;
  const more = async (what: string) => {
    const before = acknowledged();
    await until(() => acknowledged() >= before + EACH, { what, timeoutMs: 60_000 });
  };
  try {
    await more(`${EACH} acknowledged creates and kills before the failover`);
    await servers.failOver();
    await more(`${EACH} acknowledged creates and kills after the failover`);
  } finally {
    seen.stop = true;
    await writing;
  }

  const live = (id: string) =>
    pair.agents.flatMap((agent) => [...agent.live.values()]).filter(({ body }) => body.sandboxId === id).length;
  for (const by of [0, 1] as const) {
    for (const id of seen.kept) {
      const { status, body } = await pair.ask(by, "GET", `/sandboxes/${id}`);
      expect([status, (body as { state?: string }).state, live(id)], `${id} at ${by}`).toEqual([200, "running", 1]);
    }
    for (const id of seen.killed) {
      expect([(await pair.ask(by, "GET", `/sandboxes/${id}`)).status, live(id)], `${id} at ${by}`).toEqual([404, 0]);
    }
  }
  // What was begun and not acknowledged is ended, or has a record: no container is left that nobody knows.
  await expect
    .poll(
      async () => {
        const running = pair.agents.flatMap((agent) => [...agent.live.values()].map(({ body }) => body.sandboxId));
        const states = await Promise.all(running.map((id) => pair.ask(0, "GET", `/sandboxes/${id}`)));
        return running.filter((_id, index) => states[index]?.status !== 200);
      },
      { timeout: 60_000 },
    )
    .toEqual([]);
}, 240_000);
