/** Template builds of a cluster in one process, step by step. */

import { expect } from "vitest";
import type { FakeBuild } from "../fakes/fake-agent-builds.ts";
import type { Answer, Ask, Cluster, ClusterOptions } from "./cluster.ts";

/** Settings under which the orchestrator looks at builds often, and keeps a silent node for as long as a test lasts. */
export const BUILDING: ClusterOptions = { config: { buildPollMs: 20, nodeLostMs: 60_000 } };

export interface Requested {
  readonly templateID: string;
  readonly buildID: string;
  readonly tags: readonly string[];
  readonly names: readonly string[];
}

interface BuildStatus {
  readonly status: string;
  readonly logEntries: readonly { readonly message: string; readonly level: string; readonly step?: string }[];
  readonly reason?: { readonly message: string; readonly step?: string };
}

export interface Building {
  readonly request: (body: object, ask?: Ask) => Promise<Requested>;
  readonly start: (build: Requested, body?: object, ask?: Ask) => Promise<Answer>;
  readonly status: (build: Requested, query?: string, ask?: Ask) => Promise<BuildStatus>;
  /** Requests and starts a build, and waits until it is ready. */
  readonly built: (name: string, body?: object, ask?: Ask) => Promise<Requested>;
  /** Keeps the next build under way until the test ends it. */
  readonly held: () => Promise<FakeBuild>;
  /** Creates a sandbox of a template. */
  readonly create: (templateID: string, more?: object, ask?: Ask) => Promise<Answer>;
}

export function buildingOn(cluster: () => Cluster): Building {
  const building: Building = {
    async request(body, ask = {}) {
      const answer = await cluster().ask("POST", "/v3/templates", { ...ask, body });
      expect(answer.status, answer.text).toBe(202);
      return answer.body as Requested;
    },
    start({ templateID, buildID }, body = {}, ask = {}) {
      return cluster().ask("POST", `/v2/templates/${templateID}/builds/${buildID}`, { ...ask, body });
    },
    async status({ templateID, buildID }, query = "", ask = {}) {
      const path = `/templates/${templateID}/builds/${buildID}/status${query}`;
      return (await cluster().ask("GET", path, ask)).body as BuildStatus;
    },
    async built(name, body = {}, ask = {}) {
      const requested = await building.request({ name }, ask);
      const started = await building.start(requested, body, ask);
      expect(started.status, started.text).toBe(202);
      await expect.poll(() => building.status(requested, "", ask)).toMatchObject({ status: "ready" });
      return requested;
    },
    held() {
      return new Promise((resolve) => {
        cluster().agent.onBuild = (build) => resolve(build);
      });
    },
    create: (templateID, more = {}, ask = {}) =>
      cluster().ask("POST", "/v2/sandboxes", { ...ask, body: { templateID, ...more } }),
  };
  return building;
}

export function messageOf({ body }: Answer): string {
  return (body as { message: string }).message;
}
