/**
 * Replaces the programs of a fleet one after the other, in the order of docs/operating/machines.md, and keeps what clients were told
 * meanwhile. A program is started again in its version; with SVC_FLEET_ROLL=up `./scripts/up` of this checkout brings it to this one.
 */

import { bringUp } from "../platform/reboot.ts";
import { type Fleet, type Member, memberPid, nameOf } from "./fleet.ts";
import { untilBack, untilFleetReady } from "./ready.ts";

/** Whether the fleet is of an earlier version, and is brought to this one. */
export const TO_THIS_VERSION = process.env["SVC_FLEET_ROLL"] === "up";

/** A request that failed, or a stream that ended. */
export interface Told {
  /** Programs that were being replaced between the begin and the end of the request, in their order. */
  readonly during: readonly string[];
  /** The program that was asked, or that carried the stream. */
  readonly asked: string;
  /** The agent below it, where the test knows it. */
  readonly below?: string | undefined;
  readonly what: string;
}

export interface Roll {
  readonly fleet: Fleet;
  /** Aborts when the clients and streams have seen enough. */
  readonly over: AbortSignal;
  /** The programs that were replaced so far, and last the one that is being replaced. */
  readonly replaced: string[];
  readonly told: Told[];
  /** Creates that nobody has answered: each may have made a sandbox. */
  unsure: number;
  /** What clients have asked for and got. */
  done: number;
}

/** The order of an upgrade. */
export function inOrder({ orchestrators, edges, nodes }: Fleet): readonly Member[] {
  return [...orchestrators, ...edges, ...nodes];
}

/** Replaces one program, and waits until all of the fleet is ready. */
export async function replace({ fleet, replaced }: Roll, member: Member): Promise<void> {
  const former = await memberPid(member);
  replaced.push(nameOf(member));
  if (TO_THIS_VERSION) await bringUp(member.platform);
  else process.kill(former, "SIGTERM");
  await untilBack(member, former);
  await untilFleetReady(fleet);
}

/** A place in the order of the programs, to which a later failure refers. */
export function mark({ replaced }: Roll): number {
  return Math.max(0, replaced.length - 1);
}

/** @param since the mark of the begin of the request */
export function note(roll: Roll, since: number, failure: Omit<Told, "during">): void {
  roll.told.push({ ...failure, during: roll.replaced.slice(since) });
}

/** How often clients were told what, a line for each. */
export function summary({ told }: Roll): string {
  const counts = new Map<string, number>();
  for (const { during, asked, what } of told) {
    const line = `while ${during.join(", ") || "nothing"} was replaced, the ${asked}: ${what.slice(0, 200)}`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].map(([line, count]) => `${count} × ${line}`).join("\n");
}
