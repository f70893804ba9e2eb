/** Sandboxes of a cluster in one process, through its API: tests create, pause, resume and read them. */

import { expect } from "vitest";
import type { Sandbox, SandboxDetail } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import type { Answer, Cluster } from "./cluster.ts";

export interface Sandboxes {
  /**
   * Creates a sandbox, of the base template unless the body names another one; `version` is the beginning of the route's
   * path.
   */
  readonly create: (body?: object, version?: "" | "/v2") => Promise<Sandbox>;
  readonly read: (id: string) => Promise<SandboxDetail>;
  /** The types of the sandbox's events in order, without their common prefix. */
  readonly eventsOf: (id: string) => Promise<string[]>;
  readonly post: (id: string, what: string, body?: object) => Promise<Answer>;
  readonly pause: (id: string, body?: object) => Promise<Answer>;
  readonly connect: (id: string, body?: object) => Promise<Answer>;
  /** Creates a sandbox and pauses it as the second body says. */
  readonly paused: (body?: object, how?: object) => Promise<Sandbox>;
  /** Requests one of the sandbox's ports through the edge and returns the answer. */
  readonly routed: (id: string) => Promise<string>;
}

export function sandboxesOn(cluster: () => Cluster): Sandboxes {
  const sandboxes: Sandboxes = {
    async create(body = {}, version = "/v2") {
      const answer = await cluster().ask("POST", `${version}/sandboxes`, { body: { templateID: "base", ...body } });
      expect(answer.status, answer.text).toBe(201);
      return answer.body as Sandbox;
    },
    async read(id) {
      return (await cluster().ask("GET", `/sandboxes/${id}`)).body as SandboxDetail;
    },
    async eventsOf(id) {
      const list = (await cluster().ask("GET", `/events/sandboxes/${id}?orderAsc=true`)).body as { type: string }[];
      return list.map(({ type }) => type.replace("sandbox.lifecycle.", ""));
    },
    post: (id, what, body) => cluster().ask("POST", `/sandboxes/${id}/${what}`, body === undefined ? {} : { body }),
    pause: (id, body) => sandboxes.post(id, "pause", body),
    connect: (id, body = {}) => cluster().ask("POST", `/v2/sandboxes/${id}/connect`, { body }),
    async paused(body = {}, how = {}) {
      const sandbox = await sandboxes.create(body);
      const answer = await sandboxes.pause(sandbox.sandboxID, how);
      expect(answer.status, answer.text).toBe(204);
      return sandbox;
    },
    async routed(id) {
      const headers = { "svc-sandbox-id": id, "svc-sandbox-port": "1" };
      return (await fetch(`${cluster().edgeUrl}/`, { headers })).text();
    },
  };
  return sandboxes;
}

/** Expects an end that was set between `asked` and now, this many seconds after the moment of setting. */
export function expectEnd({ endAt }: Pick<SandboxDetail, "endAt">, asked: number, seconds: number): void {
  const end = Date.parse(endAt) - seconds * 1000;
  // Of whole milliseconds.
  expect(end).toBeGreaterThanOrEqual(asked - 1);
  expect(end).toBeLessThanOrEqual(Date.now());
}
