/** Where a new sandbox may start: on the node that has what it starts from, or on others that can have it too. */

import { allowsAnything } from "../../../shared/policy/egress-policy.ts";
import { missingLabel } from "../../nodes/placement/misfit.ts";
import type { LaunchDeps, LaunchRequest } from "./launch-request.ts";
import { Search } from "./search.ts";

/**
 * A named snapshot, or the memory of a template, may be started on another node than its own, also where that one is full or lacks a
 * label of the project's nodes. The image of a template binds nobody while others can read it: from the blob store, or from a node
 * that has it.
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
  // A fork stays with its source.
  if (origin.snapshotId !== sandbox.buildId && imageNodeId === undefined) return request;
  const stored = {
    snapshotId: origin.snapshotId,
    home,
    memory: origin.memory,
    resources,
    network: allowsAnything(egress),
    region,
    labels,
    hasVolumes: volumes.length > 0,
    ...(origin.snapshotId === sandbox.buildId ? {} : { template: start.build.templateId }),
  };
  const nodeId = await elsewhere.nodeFor(stored);
  const lacking = lackedBy(home, labels, core);
  const isPassedOver = () => lacking !== undefined || new Search(request, deps).choice().is === "full";
  if (nodeId !== home || !isPassedOver()) return { ...request, nodeId };
  const other = await elsewhere.away(stored).catch((error: unknown) => {
    core.log.info(
      { err: error, home, lacking, snapshotId: origin.snapshotId },
      "no other node takes what a node has that is full or lacks a label",
    );
    return undefined;
  });
  if (other === undefined) return request;
  if ("later" in other) throw other.later;
  return { ...request, nodeId: other.nodeId };
}

/** The first of the labels that the node does not have. */
function lackedBy(nodeId: string, labels: LaunchRequest["labels"], { nodes }: LaunchDeps["core"]): string | undefined {
  return labels === undefined ? undefined : missingLabel(nodes.get(nodeId)?.facts.labels ?? {}, labels);
}
