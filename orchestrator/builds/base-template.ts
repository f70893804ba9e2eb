/**
 * The template that a build is based on: which nodes have its image or can fetch it, and its way to the node that builds. A node
 * that could not fetch it does not get the build again for a time; its reason is in the failure of the build.
 */

import { AppError, isError } from "../../shared/http/errors.ts";
import type { Images } from "../lifecycle/start/images.ts";
import { reasonIn } from "../lifecycle/start/where.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Candidate, Demand } from "../nodes/placement/candidate.ts";
import type { Choice } from "../nodes/placement/choose.ts";
import type { Build } from "../store/builds/record.ts";
import type { Store } from "../store/store.ts";

/** What the base of a build asks of a node. */
export interface BaseDemand {
  /** The only node that has it. */
  readonly home?: string;
  /** The nodes that have it: they are preferred. Absent: each node does, or one alone. */
  readonly having?: ReadonlySet<string>;
  /** Nodes that neither have it nor can fetch it, each with the clause that says why. */
  readonly lacking: ReadonlyMap<string, string>;
}

export interface BaseTemplates {
  /** Undefined: the template was deleted. An error: no node can have its image. */
  demand(build: Pick<Build, "id" | "parentBuildId">): Promise<BaseDemand | AppError | undefined>;
  /**
   * Fetches the image to the node of the build. An error: that node cannot have it.
   * @throws {AppError} node_unreachable: the same call may succeed soon
   */
  bring(build: Build & { readonly nodeId: string }): Promise<"here" | "on its way" | AppError>;
  /** The build goes to other nodes for a time. */
  failed(build: Build & { readonly nodeId: string }, reason: AppError): void;
  /** Forgets the failures of other builds than these. */
  keep(buildIds: ReadonlySet<string>): void;
}

interface BaseTemplatesDeps {
  readonly templates: Pick<Store["templates"], "build">;
  readonly nodes: Pick<Nodes, "holding">;
  readonly images: Pick<Images, "holders" | "reach" | "refusals" | "fetch">;
  readonly now: () => number;
}

/** A node that could not fetch the base of a build does not get that build for this time. */
const FAILED_MS = 60_000;
const NO_DEMAND: BaseDemand = { lacking: new Map() };

/**
 * First those that have the base: an image takes longer to another node than most builds. The others stay among the candidates, because
 * they may be the nodes of the build's region. Pure.
 */
export function nearFirst(
  candidates: readonly Pick<Candidate, "id">[],
  having: BaseDemand["having"] | undefined,
  among: (passedOver: Demand["exclude"]) => Choice,
): Choice {
  if (having !== undefined) {
    const far = candidates.filter(({ id }) => !having.has(id));
    const near = among(new Map(far.map(({ id }) => [id, "does not have the template it is based on"])));
    if (near.is === "node") return near;
  }
  return among(new Map());
}

export function createBaseTemplates({ templates, nodes, images, now }: BaseTemplatesDeps): BaseTemplates {
  /** By build, then by node. */
  const failures = new Map<string, Map<string, { readonly because: string; readonly until: number }>>();

  function failedFor(id: string): [nodeId: string, because: string][] {
    const recent = [...(failures.get(id) ?? [])].filter(([, { until }]) => until > now());
    return recent.map(([nodeId, { because }]) => [nodeId, because]);
  }

  return {
    async demand({ id, parentBuildId }) {
      if (parentBuildId === undefined) return NO_DEMAND;
      const parent = await templates.build(parentBuildId);
      if (parent === undefined) return undefined;
      const { id: buildId, templateId, kind, nodeId: home } = parent;
      if (home === undefined) return NO_DEMAND;
      const bound: BaseDemand = { home, lacking: new Map() };
      // A snapshot has no image of its own that another node could read.
      if (kind !== "template") return bound;
      const reach = await images.reach({ buildId, templateId, home }).catch((reason: unknown) => {
        if (!isError(reason, "no_compatible_node")) throw reason;
        return new AppError(reason.code, reasonIn(reason.message), { cause: reason });
      });
      if (reach instanceof AppError) return reach;
      if (reach === "bound") return bound;
      const refused = images.refusals({ buildId, home }, reach.inStore);
      return {
        having: new Set([home, ...images.holders(buildId)]),
        lacking: new Map([...refused, ...failedFor(id)]),
      };
    },

    async bring({ parentBuildId, nodeId }) {
      const parent = parentBuildId === undefined ? undefined : await templates.build(parentBuildId);
      if (parent?.nodeId === undefined || parent.kind !== "template") return "here";
      const { id: buildId, templateId, image, nodeId: home } = parent;
      if (home === nodeId || nodes.holding(buildId).includes(nodeId)) return "here";
      try {
        const later = await images.fetch(nodeId, { buildId, templateId, image, home }, now());
        return later === undefined ? "here" : "on its way";
      } catch (reason) {
        if (isError(reason, "node_unreachable")) throw reason;
        return AppError.from(reason);
      }
    },

    failed({ id, nodeId }, { message }) {
      const because = `could not fetch that template: ${reasonIn(message)}`;
      const ofBuild = failures.get(id) ?? new Map<string, { because: string; until: number }>();
      failures.set(id, ofBuild.set(nodeId, { because, until: now() + FAILED_MS }));
    },

    keep(buildIds) {
      for (const id of failures.keys()) if (!buildIds.has(id)) failures.delete(id);
    },
  };
}
