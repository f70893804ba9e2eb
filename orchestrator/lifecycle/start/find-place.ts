/** Where a new sandbox may start: on the node that has what it starts from, or on others that can have it too. */

import { AppError } from "../../../shared/http/errors.ts";
import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import { missingLabel } from "../../nodes/placement/misfit.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { LaunchDeps, LaunchRequest } from "./launch-request.ts";
import { Search } from "./search.ts";
import { lacksLabel } from "./where.ts";

const TOO_LARGE =
  "its state takes longer to another node than a request may: take a snapshot of the source, and start sandboxes from that";

/**
 * A named snapshot, or the memory of a template, may be started on another node than its own, also where that one is full or lacks a
 * label of the project's nodes. A fork stays with its source, unless that one's node lacks a label. The image of a template binds nobody
 * while others can read it: from the blob store, or from a node that has it.
 */
export async function findPlace(request: LaunchRequest, deps: LaunchDeps): Promise<LaunchRequest> {
  const { elsewhere, core } = deps;
  const { nodeId: home, imageNodeId, start, region, labels, sandbox } = request;
  const { origin, resources, egress, volumes = [] } = start;
  if (home === undefined) return request;
  if (origin === undefined) {
    if (volumes.length > 0 || home !== imageNodeId) return request;
    const reach = await deps.images.reach({ ...start.build, home });
    if (reach === "bound") return request;
    const { nodeId: _bound, ...free } = request;
    return { ...free, imageInStore: reach.inStore };
  }
  if (origin.is !== "snapshot") return request;
  const lacking = lackedBy(home, labels, core);
  const isOfSandbox = origin.snapshotId === sandbox.buildId;
  const isFork = !isOfSandbox && imageNodeId === undefined;
  if (isFork && lacking === undefined) return request;
  const stored = {
    snapshotId: origin.snapshotId,
    home,
    memory: origin.memory,
    resources,
    network: allowsAnything(egress),
    region,
    labels,
    hasVolumes: volumes.length > 0,
    ...(isOfSandbox || isFork ? {} : { template: start.build.templateId }),
  };
  const nodeId = await elsewhere.nodeFor(stored);
  const isPassedOver = () => lacking !== undefined || new Search(request, deps).choice().is === "full";
  if (nodeId !== home || !isPassedOver()) return { ...request, nodeId };
  return onAnother(request, stored, lacking, deps);
}

/** The node of the snapshot is full, or lacks a label. @throws {AppError} with the label and why no other node can have it */
async function onAnother(
  request: LaunchRequest,
  stored: Parameters<Elsewhere["away"]>[0],
  lacking: string | undefined,
  { elsewhere, core }: LaunchDeps,
): Promise<LaunchRequest> {
  const { home, snapshotId } = stored;
  const other = await elsewhere.away(stored).catch((reason: unknown) => {
    const error = AppError.from(reason);
    core.log.info(
      { err: error, home, lacking, snapshotId },
      "no other node takes what a node has that is full or lacks a label",
    );
    return { error };
  });
  if ("nodeId" in other) return { ...request, nodeId: other.nodeId };
  const isFork = stored.template === undefined && snapshotId !== request.sandbox.buildId;
  if ("later" in other) {
    // The next request of a fork has another state to fetch.
    if (isFork && lacking !== undefined) throw lacksLabel(home, lacking, new AppError("no_compatible_node", TOO_LARGE));
    throw other.later;
  }
  if (lacking !== undefined) throw lacksLabel(home, lacking, other.error);
  return request;
}

/** The first of the labels that the node does not have. */
function lackedBy(nodeId: string, labels: LaunchRequest["labels"], { nodes }: LaunchDeps["core"]): string | undefined {
  return labels === undefined ? undefined : missingLabel(nodes.get(nodeId)?.facts.labels ?? {}, labels);
}
