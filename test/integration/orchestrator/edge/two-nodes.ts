/** An edge before two nodes: a sandbox on the first one, and the place on the second one where tests move it to. */

import { onTestFinished } from "vitest";
import type { AutoResume, EdgeRoute, FindSandbox, Whereabouts } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { type FrontDoor, type FrontDoorOptions, httpBackend, openFrontDoor, routed } from "./front-door.ts";

/** A node of the fleet, with a container on it that notes what it gets and answers only when the test lets it. */
interface Place {
  readonly route: EdgeRoute;
  readonly seen: string[];
}

export interface Fleet {
  readonly door: FrontDoor;
  readonly port: number;
  /** Where the sandbox is at first. Its container never answers. */
  readonly first: Place;
  /** Where it is moved to, by another node's proxy. Not routed by the edge. */
  readonly second: Place;
  visit(how?: RequestInit): Promise<{ status: number; text: string; retryAfter: string | null }>;
}

export interface Answers {
  readonly autoResume?: (fleet: Fleet) => ReturnType<AutoResume>;
  readonly find?: (fleet: Fleet) => Whereabouts;
}

export async function openFleet(options: FrontDoorOptions, answers: Answers = {}): Promise<Fleet> {
  const asked = (): Fleet => fleet;
  const { autoResume, find } = answers;
  const door = await openFrontDoor({
    sameHost: false,
    ...options,
    ...(autoResume === undefined ? {} : { autoResume: () => autoResume(asked()) }),
    ...(find === undefined ? {} : { find: (() => Promise.resolve().then(() => find(asked()))) satisfies FindSandbox }),
  });
  onTestFinished(() => door.stop());
  const other = await openFrontDoor({ sameHost: false });
  onTestFinished(() => other.stop());
  const seen: { first: string[]; second: string[] } = { first: [], second: [] };
  const route = door.add();
  const moved = other.add({ sandboxId: route.sandboxId, nodeId: "other" });
  const backend = await httpBackend(route.address, ({ method = "" }) => void seen.first.push(method));
  onTestFinished(() => backend.close());
  const behind = await httpBackend(
    moved.address,
    ({ method = "" }, response) => {
      seen.second.push(method);
      response.end("from elsewhere");
    },
    backend.port,
  );
  onTestFinished(() => behind.close());
  const fleet: Fleet = {
    door,
    port: backend.port,
    first: { route, seen: seen.first },
    second: { route: moved, seen: seen.second },
    async visit(how = {}) {
      const response = await fetch(`http://127.0.0.1:${door.port}/`, { ...how, headers: routed(route, backend.port) });
      return { status: response.status, text: await response.text(), retryAfter: response.headers.get("retry-after") };
    },
  };
  return fleet;
}

export const running = ({ second }: Fleet) => ({ is: "running" as const, route: second.route });
export const message = (text: string) => (JSON.parse(text) as { message: string }).message;
export const NOT_FOUND = "The sandbox was not found";
