/**
 * Checks of stored snapshots, and of the images of templates. The nodes read, and hold how far they are: a check belongs to no orchestrator, so any of them answers, and
 * one that nobody asks about ends by itself.
 */

import { randomUUID } from "node:crypto";
import type { CheckSnapshotBody } from "../../shared/agent-api/snapshot-check-shapes.ts";
import type { CheckedCopy, SnapshotVerification, snapshotCheckApi } from "../../shared/api/stored/snapshot-checks.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError, isError } from "../../shared/http/errors.ts";
import { page } from "../forms/pagination.ts";
import { iso } from "../forms/time.ts";
import type { NodeView } from "../nodes/entry.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { StoredItem } from "../store/storage/storage.ts";
import { totalBytes } from "../store/storage/stored-bytes.ts";
import type { TemplateBuild } from "../store/storage/template-builds.ts";
import type { Store } from "../store/store.ts";
import { copyState, outcomeOf } from "./check-plan.ts";

export interface SnapshotCheckDeps {
  readonly store: Pick<Store, "storage" | "blobRefs">;
  readonly nodes: Pick<Nodes, "list" | "agent">;
}

/** What can be checked, under one id on its node and in the blob store. */
interface Stored extends Pick<StoredItem, "id" | "projectId" | "templateId" | "nodeId" | "snapshotId" | "size"> {
  /** `template`: the image of a build, whose id it is. */
  readonly kind: StoredItem["kind"] | "template";
  readonly unusedSince: number;
}

interface Place {
  readonly nodeId: string;
  /** Absent: the copy of the node itself. */
  readonly stored?: CheckSnapshotBody["stored"];
  /** The record says that the node has it. False: it may have fetched one. */
  readonly isHome: boolean;
}

/** A node answers within five seconds how far it is. */
const NODE_LIMIT = { timeoutMs: 15_000 };

export function createSnapshotCheckHandlers({ store, nodes }: SnapshotCheckDeps): Handlers<typeof snapshotCheckApi> {
  async function all(): Promise<Stored[]> {
    return [...(await store.storage.all()), ...(await store.storage.templateBuilds()).map(imageOf)];
  }

  /** Where copies are, or may be. */
  async function placesOf({ kind, snapshotId, nodeId }: Stored): Promise<Place[]> {
    const known = nodes.list();
    // A template outlives the node that has built it, where others have its image.
    const home = kind === "template" && !known.some(({ id }) => id === nodeId) ? undefined : nodeId;
    const ready = known.filter(({ status }) => status !== "unhealthy" && status !== "connecting").map(({ id }) => id);
    const ids = [...new Set([...(home === undefined ? [] : [home]), ...ready])];
    const places: Place[] = ids.map((nodeId) => ({ nodeId, isHome: nodeId === home }));
    const ref = await store.blobRefs.of(snapshotId);
    if (ref === undefined) return places;
    const stored = { ref: ref.ref, projectId: ref.projectId };
    return [...places, { nodeId: readerOf(known, home) ?? "", isHome: true, stored }];
  }

  async function copyAt(
    { nodeId, stored, isHome }: Place,
    { kind, ...ids }: CheckIds,
  ): Promise<CheckedCopy | undefined> {
    const copy = { place: stored === undefined ? ("node" as const) : ("store" as const), nodeID: nodeId };
    try {
      if (nodeId === "") throw new AppError("unavailable", "no ready node uses the blob store");
      const body = { ...defined({ stored }), ...(kind === "template" ? { template: true as const } : {}) };
      const check = await nodes.agent(nodeId).checkSnapshot({ params: ids, body }, NODE_LIMIT);
      if (check.state === "absent" && !isHome) return undefined;
      const { doneBytes, totalBytes: ofAll, parts } = check;
      return { ...copy, state: copyState(check), doneBytes, totalBytes: ofAll, parts, error: null };
    } catch (error) {
      if (!isHome) return undefined;
      const text = isError(error, "not_found")
        ? "the node's agent is of a version that does not check this"
        : AppError.from(error).message;
      return { ...copy, state: "unread", doneBytes: 0, totalBytes: 0, parts: [], error: text };
    }
  }

  async function howFar(item: Stored, checkId: string): Promise<SnapshotVerification> {
    const { kind, snapshotId } = item;
    const places = await placesOf(item);
    const copies = (await Promise.all(places.map((place) => copyAt(place, { kind, snapshotId, checkId })))).filter(
      (copy) => copy !== undefined,
    );
    return { checkID: checkId, snapshotID: snapshotId, copies, ...outcomeOf(copies) };
  }

  async function itemOf(snapshotID: string): Promise<Stored> {
    const item =
      (await store.storage.find(snapshotID)) ??
      (await store.storage.templateBuilds()).map(imageOf).find(({ snapshotId }) => snapshotId === snapshotID);
    if (item === undefined)
      throw new AppError("not_found", `snapshot '${snapshotID}' not found, GET /admin/snapshots lists them`);
    return item;
  }

  return {
    async listStoredStates({ query }, { header }) {
      const placeOf = ({ unusedSince, snapshotId }: Stored) => ({ at: unusedSince, name: snapshotId });
      return Promise.all(page(await all(), { ...query, placeOf }, header).map(shown));
    },
    async verifySnapshot({ params }) {
      return howFar(await itemOf(params.snapshotID), randomUUID());
    },
    async readSnapshotCheck({ params }) {
      return howFar(await itemOf(params.snapshotID), params.checkID);
    },
    async cancelSnapshotCheck({ params }) {
      const ids = { snapshotId: params.snapshotID, checkId: params.checkID };
      // A node that does not answer ends it by itself.
      await Promise.allSettled(
        nodes.list().map(({ id }) => nodes.agent(id).cancelSnapshotCheck({ params: ids }, NODE_LIMIT)),
      );
    },
  };

  async function shown({ snapshotId, kind, id, projectId, templateId, nodeId, size, unusedSince }: Stored) {
    return {
      snapshotID: snapshotId,
      kind,
      id,
      teamID: projectId,
      templateID: templateId,
      nodeID: nodeId ?? null,
      inStore: (await store.blobRefs.of(snapshotId)) !== undefined,
      storedBytes: size === undefined ? null : totalBytes(size),
      unusedSince: iso(unusedSince),
    };
  }
}

/** The images of templates are stored under the ids of their builds. */
function imageOf({ buildId, templateId, projectId, nodeId, builtAt }: TemplateBuild): Stored {
  const id = buildId;
  return { kind: "template", id, snapshotId: id, templateId, projectId, nodeId, size: undefined, unusedSince: builtAt };
}

interface CheckIds {
  readonly kind: Stored["kind"];
  readonly snapshotId: string;
  readonly checkId: string;
}

/** The node that reads the blob store: the same one in each request, and not the one whose own copy is read, if there is another. */
function readerOf(nodes: readonly NodeView[], home: string | undefined): string | undefined {
  const able = nodes
    .filter(({ status, facts }) => status === "ready" && facts.capabilities.blobStore === true)
    .map(({ id }) => id)
    .sort();
  return able.find((id) => id !== home) ?? able[0];
}
