/**
 * Brings the image of a template to the node that is to start it: from the blob store, or from a node that has it. What nodes have fetched
 * is remembered until they report it, so that placement counts it; a node that has dropped it fetches it again.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { FetchImageBody } from "../../../shared/agent-api/routes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import { atMost } from "../../../shared/program/at-most.ts";
import type { NodeView } from "../../nodes/entry.ts";
import { offers } from "../../nodes/offers.ts";
import type { Core } from "../core.ts";
import { type Home, imageOnItsNodeOnly, onItsWay } from "./where.ts";

interface WantedImage {
  readonly buildId: string;
  readonly templateId: string;
  /** Name of the image. */
  readonly image: string;
  /** The node that built it. */
  readonly home: string;
}

export interface Images {
  /** The nodes that have the image of the build, beside the one that built it. */
  holders(buildId: string): ReadonlySet<string>;
  /** Why each node that lacks the image cannot fetch it; undefined for a node that has it or can. */
  refusals(wanted: Pick<WantedImage, "buildId" | "home">, inStore: boolean): [nodeId: string, because: string][];
  /**
   * Whether the start is free to go to any node that has the image or can fetch it. `bound`: only the node that built it can take it,
   * and may. @throws {AppError} no_compatible_node: no node can
   */
  reach(wanted: Omit<WantedImage, "image">): Promise<"bound" | { readonly inStore: boolean }>;
  /** Undefined: the node has the image. An error: it is on its way. @throws {AppError} no_compatible_node, no_space; why it cannot come */
  fetch(nodeId: string, wanted: WantedImage, until: number): Promise<AppError | undefined>;
  /** Resolves when the node has the image. @throws {AppError} as `fetch`; unavailable while it is on its way */
  bring(nodeId: string, wanted: WantedImage, until: number): Promise<void>;
}

const CALL_LIMIT_MS = 30_000;
const PAUSE_MS = 250;
const MOST_REMEMBERED = 10_000;
/** Nodes that are asked for one image. */
const MOST_PEERS = 3;

type Parts = Pick<Core, "nodes" | "now" | "log"> & {
  readonly store: { readonly blobRefs: Pick<Core["store"]["blobRefs"], "of"> };
};
/** Resolves when the image has come; an error: it is on its way, and the request's time is over. */
type Source = { readonly name: string; bring(): Promise<AppError | undefined> };

export function createImages({ store, nodes, now, log }: Parts, pauseMs = PAUSE_MS): Images {
  const fetched = new LRUCache<string, Set<string>>(atMost(MOST_REMEMBERED));
  const call = { timeoutMs: CALL_LIMIT_MS };

  function holders(buildId: string): Set<string> {
    return new Set([...nodes.holding(buildId), ...(fetched.get(buildId) ?? [])]);
  }

  /** Nodes from which another one can read the image, the one that built it first. */
  function giving({ buildId, home }: Pick<WantedImage, "buildId" | "home">): NodeView[] {
    const others = [...holders(buildId)].filter((id) => id !== home);
    return [home, ...others].map((id) => nodes.get(id)).filter(offers);
  }

  const homeOf = (id: string): Home => ({ status: nodes.get(id)?.status, unreached: nodes.unreached(id).length > 0 });

  async function fetchAt(nodeId: string, { buildId, templateId }: WantedImage, body: FetchImageBody, from?: string) {
    const arrival = await nodes.agent(nodeId).fetchImage({ params: { buildId }, body }, call);
    return arrival.here ? undefined : onItsWay(from, nodeId, arrival, `the image of template ${templateId}`);
  }

  function ofStore(
    nodeId: string,
    wanted: WantedImage,
    { ref, projectId }: { ref: string; projectId: string },
  ): Source {
    const { image } = wanted;
    return { name: "the blob store", bring: () => fetchAt(nodeId, wanted, { image, ref, projectId }) };
  }

  function ofNode(nodeId: string, wanted: WantedImage, giver: NodeView): Source {
    const { image, buildId, templateId } = wanted;
    // Every project that may start the template reads the same blobs.
    const body = { image, projectId: templateId };
    return {
      name: `node ${giver.id}`,
      async bring() {
        const offer = await nodes.agent(giver.id).offerImage({ params: { buildId }, body }, call);
        const { ref, ticket } = offer;
        if (ref === undefined) return onItsWay(giver.id, undefined, offer, `the image of template ${templateId}`);
        const peer = { nodeId: giver.id, url: giver.facts.apiUrl, ticket };
        return fetchAt(nodeId, wanted, { ...body, ref, peer }, giver.id);
      },
    };
  }

  async function sourcesFor(nodeId: string, wanted: WantedImage): Promise<Source[]> {
    const { blobStore, peers } = nodes.get(nodeId)?.facts.capabilities ?? {};
    const stored = blobStore === true ? await store.blobRefs.of(wanted.buildId) : undefined;
    const givers = peers === true ? giving(wanted).filter(({ id }) => id !== nodeId) : [];
    return [
      ...(stored === undefined ? [] : [ofStore(nodeId, wanted, stored)]),
      ...givers.slice(0, MOST_PEERS).map((giver) => ofNode(nodeId, wanted, giver)),
    ];
  }

  /** As `Source.bring`. */
  async function complete(source: Source, until: number): Promise<AppError | undefined> {
    for (;;) {
      const later = await source.bring();
      if (later === undefined || now() >= until) return later;
      await sleep(pauseMs);
    }
  }

  async function fetch(nodeId: string, wanted: WantedImage, until: number): Promise<AppError | undefined> {
    const { buildId, templateId, home } = wanted;
    fetched.get(buildId)?.delete(nodeId);
    const sources = await sourcesFor(nodeId, wanted);
    if (sources.length === 0) throw imageOnItsNodeOnly(templateId, home, homeOf(home), nodeId);
    const failures: { readonly from: string; readonly error: AppError }[] = [];
    for (const source of sources) {
      try {
        const later = await complete(source, until);
        if (later !== undefined) return later;
        fetched.set(buildId, (fetched.get(buildId) ?? new Set()).add(nodeId));
        log.info({ nodeId, from: source.name, buildId, templateId }, "a node has fetched the image of a template");
        return undefined;
      } catch (reason) {
        const error = AppError.from(reason);
        // Its own disk is full: from elsewhere it is as large.
        if (error.code === "no_space") throw error;
        log.warn({ err: error, nodeId, from: source.name, buildId }, "a node could not fetch the image of a template");
        failures.push({ from: source.name, error });
      }
    }
    throw together(failures);
  }

  return {
    holders,
    fetch,

    refusals({ buildId, home }, inStore) {
      const having = holders(buildId).add(home);
      const isGiven = giving({ buildId, home }).length > 0;
      return nodes.list().flatMap(({ id, facts: { capabilities } }): [string, string][] => {
        if (having.has(id) || (inStore && capabilities.blobStore === true)) return [];
        if (isGiven && capabilities.peers === true) return [];
        const without = "does not have the image, and";
        if (isGiven) return [[id, `${without} reads nothing from other nodes: it has not joined with a certificate`]];
        return [[id, inStore ? `${without} has no blob store` : `${without} no node that answers can give it`]];
      });
    },

    async reach({ buildId, templateId, home }) {
      if (!nodes.hasOthers(home)) return "bound";
      const known = homeOf(home);
      const isGiven = giving({ buildId, home }).length > 0;
      // Most starts ask nothing of the database.
      const inStore = !isGiven && (await store.blobRefs.of(buildId)) !== undefined;
      const isElsewhere = [...holders(buildId)].some((id) => id !== home && nodes.get(id)?.status === "ready");
      if (isGiven || inStore || isElsewhere) return { inStore };
      const isThere = known.status === "ready" || known.status === "standby" || known.status === "draining";
      // A node of which this orchestrator has not heard since its start may report soon.
      if (isThere || (known.status === "connecting" && !known.unreached)) return "bound";
      throw imageOnItsNodeOnly(templateId, home, known);
    },

    async bring(nodeId, wanted, until) {
      const later = await fetch(nodeId, wanted, until);
      if (later !== undefined) throw later;
    },
  };
}

/** Names each source with its reason; the code is that of the last one. */
function together(failures: readonly { readonly from: string; readonly error: AppError }[]): AppError {
  const last = failures.at(-1)?.error ?? new AppError("no_compatible_node", "nothing gives the image");
  if (failures.length < 2) return last;
  const message = failures.map(({ from, error }) => `from ${from}: ${error.message}`).join("; ");
  return new AppError(last.code, message, { cause: last });
}
