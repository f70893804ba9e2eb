/**
 * Brings the image of a template to the node that is to start it, from the node that built it. What nodes have fetched is
 * remembered, so that placement counts it; a node that has dropped it fetches it again.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { AppError } from "../../../shared/http/errors.ts";
import { offers } from "../../nodes/offers.ts";
import type { Core } from "../core.ts";
import { onItsWay } from "./where.ts";

interface WantedImage {
  readonly buildId: string;
  readonly templateId: string;
  /** Name of the image. */
  readonly image: string;
  /** The node that built it. */
  readonly home: string;
}

export interface Images {
  /** The nodes that have fetched the image of the build. */
  holders(buildId: string): ReadonlySet<string>;
  /** Resolves when the node has the image. @throws {AppError} no_compatible_node, unavailable while it is on its way, no_space */
  bring(nodeId: string, wanted: WantedImage, until: number): Promise<void>;
}

const CALL_LIMIT_MS = 30_000;
const PAUSE_MS = 250;
const MOST_REMEMBERED = 10_000;
const NONE: ReadonlySet<string> = new Set();

export function createImages({ nodes, now, log }: Pick<Core, "nodes" | "now" | "log">, pauseMs = PAUSE_MS): Images {
  const known = new LRUCache<string, Set<string>>({ max: MOST_REMEMBERED });
  const call = { timeoutMs: CALL_LIMIT_MS };

  return {
    holders: (buildId) => known.get(buildId) ?? NONE,
    async bring(nodeId, { buildId, templateId, image, home }, until) {
      known.get(buildId)?.delete(nodeId);
      const from = nodes.get(home);
      if (!offers(from) || nodes.get(nodeId)?.facts.capabilities.peers !== true)
        throw new AppError(
          "no_compatible_node",
          `Failed to place sandbox: no compatible node: the image of template ${templateId} is on node ${home} only, and node ${nodeId} cannot fetch it from there: start it when node ${home} has room and answers, or build the template again`,
        );
      // Every project that may start the template reads the same blobs.
      const body = { image, projectId: templateId };
      for (;;) {
        const { ref, ticket, ...described } = await nodes.agent(home).offerImage({ params: { buildId }, body }, call);
        let progress = { at: undefined as string | undefined, ...described };
        if (ref !== undefined) {
          const peer = { nodeId: home, url: from.facts.apiUrl, ticket };
          const arrival = await nodes
            .agent(nodeId)
            .fetchImage({ params: { buildId }, body: { ...body, ref, peer } }, call);
          if (arrival.here) break;
          progress = { ...described, ...arrival, at: nodeId };
        }
        if (now() >= until) throw onItsWay(home, progress.at, progress, `the image of template ${templateId}`);
        await sleep(pauseMs);
      }
      const holders = known.get(buildId) ?? new Set();
      known.set(buildId, holders.add(nodeId));
      log.info({ nodeId, home, buildId, templateId }, "a node has fetched the image of a template from another one");
    },
  };
}
