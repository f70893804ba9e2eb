/**
 * Every program of a fleet is replaced, one after the other, in the order of docs/operating/machines.md, while sandboxes run, streams
 * are open and clients work. With SVC_FLEET_ROLL=up the fleet is of an earlier version (SVC_FLEET_ENV), and each program is brought to
 * this one: on the way the versions of orchestrators, edges and agents differ.
 */

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runClient } from "../support/fleet/clients.ts";
import { allThere } from "../support/fleet/counting.ts";
import { nameOf, openFleet } from "../support/fleet/fleet.ts";
import { expectInvariants } from "../support/fleet/invariants.ts";
import { untilFleetReady } from "../support/fleet/ready.ts";
import { inOrder, type Roll, replace, summary, TO_THIS_VERSION, type Told } from "../support/fleet/roll.ts";
import { createOn, removeAllBut } from "../support/fleet/sandboxes.ts";
import { expectOutput, openStreams, type Placed } from "../support/fleet/streams.ts";
import { listedSandboxes } from "../support/platform/host-objects.ts";
import { api, asAdmin } from "../support/platform/platform.ts";

const CLIENTS = 2;
const fleet = openFleet();
const orchestrators = new Set(fleet.orchestrators.map(nameOf));
const edges = new Set(fleet.edges.map(nameOf));

beforeAll(() => untilFleetReady(fleet), 150_000);
afterAll(async () => {
  await untilFleetReady(fleet);
  await removeAllBut(fleet, []);
}, 300_000);

test(
  "while each program of a fleet is replaced, no sandbox, count or acknowledged request is lost, and clients see only what the pages say",
  async () => {
    const placed: Placed[] = [];
    for (const node of fleet.nodes) for (const one of await createOn(fleet, node, 1)) placed.push({ node, one });
    const lasting = placed.map(({ one }) => one);
    const begun = Math.floor(Date.now() / 1000);
    const over = new AbortController();
    // Also when the test fails: the clients would not end by themselves.
    onTestFinished(() => over.abort());
    const roll: Roll = { fleet, over: over.signal, replaced: [], told: [], unsure: 0, done: 0 };
    const streams = await openStreams(roll, placed);
    const clients = Promise.all([...Array(CLIENTS).keys()].map((first) => runClient(roll, first)));
    // It is awaited below; until then a failure is no unhandled one.
    clients.catch(() => undefined);

    try {
      for (const member of inOrder(fleet)) {
        await replace(roll, member);
        await expectOutput(streams);
        await allThere(fleet, lasting, [roll.replaced.length]);
      }
    } finally {
      over.abort();
      console.log(`${roll.done} sandboxes were made, used and killed meanwhile\n${summary(roll)}`);
    }
    await clients;

    expect(roll.told.filter((one) => !isPromised(one))).toEqual([]);
    expect(roll.done).toBeGreaterThan(0);
    const own = new Set(lasting.map(({ id }) => id));
    for (const { platform } of fleet.orchestrators) {
      const others = (await listedSandboxes(platform, "running")).filter(({ sandboxID }) => !own.has(sandboxID));
      expect(others.length).toBeLessThanOrEqual(roll.unsure);
    }
    for (const { id } of lasting) expect(await movesOf(id)).toEqual(["created"]);
    expect(await lostSince(begun)).toEqual([]);
    await removeAllBut(fleet, lasting);
    await allThere(fleet, lasting);
    await expectInvariants(fleet);
  },
  TO_THIS_VERSION ? 7_200_000 : 900_000,
);

/** What docs/operating/machines.md says that clients may see during an upgrade. */
function isPromised({ during, asked, below, what }: Told): boolean {
  // A client would believe that its sandbox is gone, or has lost what was acknowledged.
  if (/not found|was killed|is paused|told as ended|after its kill|printed|\b40[049]\b/i.test(what)) return false;
  // It is away for a moment, and an edge ends its streams.
  if (during.includes(asked)) return true;
  if (!edges.has(asked)) return false;
  if (during.some((name) => orchestrators.has(name)) && /cannot say at the moment|HTTP 503/.test(what)) return true;
  // What goes through the proxy of a node ends with its agent.
  return below === undefined
    ? during.some((name) => name.startsWith("agent")) && !what.startsWith("stream")
    : during.includes(below);
}

/** The changes of state of a sandbox, as its events tell them. */
async function movesOf(id: string): Promise<readonly string[]> {
  const { json } = await api(fleet.through(1), "GET", `/events/sandboxes/${id}?orderAsc=true&limit=100`);
  const moves = /^sandbox\.lifecycle\.(created|paused|resumed|killed)$/;
  return (json as { type: string }[]).flatMap(({ type }) => moves.exec(type)?.[1] ?? []);
}

/** Nodes that counted as lost. */
async function lostSince(begun: number): Promise<unknown> {
  const platform = fleet.through(0);
  const path = `/admin/audit?objectKind=node&action=loseNode&start=${begun}`;
  const reply = await api(platform, "GET", path, asAdmin(platform));
  expect(reply.status, reply.text).toBe(200);
  return reply.json;
}
