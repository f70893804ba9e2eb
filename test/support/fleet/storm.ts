/**
 * Clients that work on sandboxes of a fleet all the time, while faults meet the fleet under some of their requests (storm-faults.ts).
 * Each client has its own sandboxes and repeats what was not done, so it knows what every sandbox must be.
 */

import type { Random } from "../../fuzz/random.ts";
import type { Reply } from "../platform/platform.ts";
import type { Lasting } from "../sandbox/lasting.ts";
import { countIn, expectGoesOn } from "./counting.ts";
import type { Fleet } from "./fleet.ts";
import { insist, type Kind, madeBy } from "./insist.ts";
import { type Faults, injectFault } from "./storm-faults.ts";

export interface Storm {
  readonly fleet: Fleet;
  /** Operations that are left; the clients share them. */
  left: number;
  readonly faults: Faults;
  /** First answers by kind and status. */
  readonly answers: Map<string, number>;
  longestMs: number;
}

export type Own = Lasting & { state: "running" | "paused" };

/** One client, with choices and sandboxes of its own. */
interface Client {
  readonly storm: Storm;
  readonly random: Random;
  readonly own: Own[];
}

/** One of so many operations meets a fault. */
const FAULT_EVERY = 10;
const MOST_SANDBOXES = 3;

/** Works until no operation is left, and resolves to the sandboxes that are left. Throws at an answer or state that cannot be. */
export async function runClient(storm: Storm, random: Random): Promise<readonly Own[]> {
  const client: Client = { storm, random, own: [] };
  while (storm.left > 0) {
    storm.left--;
    const fault = random.below(FAULT_EVERY) === 0 ? injectFault(storm.faults, random) : Promise.resolve();
    await operate(client);
    await fault;
  }
  return client.own;
}

async function operate(client: Client): Promise<void> {
  const { storm, random, own } = client;
  const one = own.length === 0 ? undefined : random.pick(own);
  if (one === undefined || (own.length < MOST_SANDBOXES && random.below(3) === 0)) {
    const [id = ""] = madeBy(await perform(client, "create", ""));
    own.push({ ...(await countIn(storm.fleet, id, random.below(2))), state: "running" });
  } else if (one.state === "paused") {
    // A kill of a paused sandbox is rarer than its return.
    await change(client, one, random.below(5) === 0 ? "kill" : "resume");
  } else {
    const kind = random.pick(["pause", "pause", "look", "look", "kill", "fork", "snapshot"] as const);
    if (kind === "look") await look(client, one);
    else await change(client, one, kind);
  }
}

async function change(client: Client, one: Own, kind: Kind): Promise<void> {
  const reply = await perform(client, kind, one.id);
  if (kind === "pause") one.state = "paused";
  if (kind === "resume") one.state = "running";
  if (kind === "kill") client.own.splice(client.own.indexOf(one), 1);
  if (kind !== "fork") return;
  for (const id of madeBy(reply)) {
    // A copy counts on where its source was.
    await look(client, { ...one, id });
    await perform(client, "kill", id);
  }
}

async function perform({ storm, random }: Client, kind: Kind, id: string): Promise<Reply> {
  const by = random.below(storm.fleet.orchestrators.length);
  const { first, last, tookMs } = await insist(storm.fleet, { kind, id }, by);
  const answer = `${kind} ${first ?? "no answer"}`;
  storm.answers.set(answer, (storm.answers.get(answer) ?? 0) + 1);
  storm.longestMs = Math.max(storm.longestMs, tookMs);
  return last;
}

/** Looks at a sandbox through any orchestrator and edge. */
function look({ storm: { fleet }, random }: Client, one: Lasting): Promise<void> {
  return expectGoesOn(fleet, one, random.below(fleet.orchestrators.length), random.below(fleet.edges.length));
}
