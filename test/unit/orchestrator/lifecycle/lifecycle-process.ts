/** One life of an orchestrator of the property test: its parts, over a store and a node that it loses with its death. */

import { createBackground } from "../../../../orchestrator/base/background.ts";
import { createSeeds } from "../../../../orchestrator/base/keys/seeds.ts";
import { createEnding, type Ending } from "../../../../orchestrator/lifecycle/ending/kill.ts";
import { createNodeLoss, type NodeLoss } from "../../../../orchestrator/lifecycle/ending/node-loss.ts";
import { createPausing } from "../../../../orchestrator/lifecycle/pausing/pause.ts";
import { createResuming } from "../../../../orchestrator/lifecycle/pausing/resume.ts";
import { createNetworkUpdating } from "../../../../orchestrator/lifecycle/replace-policy.ts";
import { createRewinding } from "../../../../orchestrator/lifecycle/rewinding/rewind.ts";
import { createCheckpointing } from "../../../../orchestrator/lifecycle/snapshots/checkpoint.ts";
import { createSnapshotRemover } from "../../../../orchestrator/lifecycle/snapshots/snapshot-removal.ts";
import { createProjectQuota } from "../../../../orchestrator/lifecycle/snapshots/stored-quota.ts";
import { createTransitions, type Transition } from "../../../../orchestrator/lifecycle/transitions.ts";
import type { Nodes } from "../../../../orchestrator/nodes/nodes.ts";
import { createRoutingTable, type RoutingTable } from "../../../../orchestrator/nodes/routing-table.ts";
import type { Store } from "../../../../orchestrator/store/store.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { createSeal } from "../../../../shared/program/sealing/seal.ts";
import { lifecycleCore } from "../../../support/fakes/lifecycle-core.ts";
import type { LifecycleAgent } from "./lifecycle-node.ts";
import { guarded } from "./mortal.ts";

export const sealing = createSeal("key", "the test");
/** As much as the sandbox reserves for a snapshot: a reservation that is never given back refuses the next one. */
const ROOM_FOR_ONE = 128 * 1024 ** 2;
/** The time, which stands still. */
export const NOW = 5;
export const log = createLog({ component: "test", level: "silent" });

/** One life of the orchestrator's process: after its death it reaches neither the database nor the node. */
export interface Process {
  readonly memberId: string;
  readonly alive: { is: boolean };
  readonly died: Promise<void>;
  readonly die: () => void;
  readonly ending: Ending;
  readonly nodeLoss: NodeLoss;
  readonly pausing: ReturnType<typeof createPausing>;
  readonly resuming: ReturnType<typeof createResuming>;
  readonly rewinding: ReturnType<typeof createRewinding>;
  readonly checkpointing: ReturnType<typeof createCheckpointing>;
  readonly networks: ReturnType<typeof createNetworkUpdating>;
  readonly routes: RoutingTable;
  readonly background: ReturnType<typeof createBackground>;
  readonly store: Store;
  readonly nodes: Nodes;
}

/** @param own the store of this process, and its id among several */
export function bootProcess(own: {
  readonly store: Store;
  readonly memberId: string;
  readonly agentFor: (caller: { readonly is: boolean }) => LifecycleAgent;
}): Process {
  const alive = { is: true };
  let die: () => void = () => undefined;
  const died = new Promise<void>((resolve) => {
    die = () => {
      alive.is = false;
      resolve();
    };
  });
  const mine = guarded(own.store, alive);
  const agent = own.agentFor(alive);
  const nodes = {
    list: () => [],
    mayChange: () => true,
    refused: () => undefined,
    agent: () => guarded(agent, alive),
    get: () => ({ status: "ready", facts: {} }),
    freed: () => undefined,
    placing: () => () => undefined,
  } as unknown as Nodes;
  const background = createBackground(log);
  const routes = createRoutingTable({
    seeds: createSeeds("seed", []),
    place: () => ({ proxyUrl: "http://127.0.0.1:1", sameHost: false }),
  });
  const transitions = createTransitions(mine.operations);
  const neededOn = (nodeId: string) => mine.pausedSandboxes.snapshotsOn(nodeId);
  const removal = createSnapshotRemover({ nodes, background, neededOn, log, timeoutMs: 1_000 });
  const core = lifecycleCore({
    store: mine,
    nodes,
    routes,
    transitions,
    snapshots: removal,
    sealing,
    background,
    log,
    now: () => NOW,
  });
  const quota = createProjectQuota({ storage: mine.storage, nodes, log, quotaBytes: ROOM_FOR_ONE });
  const ending = createEnding({ core, observe: () => undefined });
  // The wait must be above zero: it is the time for concurrent transitions, and not for the node.
  const patient = {
    ...core,
    transitions: {
      ...transitions,
      perform: <T>(each: Transition<T>) => transitions.perform({ ...each, waitMs: 5_000 }),
    },
  };
  return {
    memberId: own.memberId,
    alive,
    died,
    die,
    ending,
    nodeLoss: createNodeLoss({ core, ending }),
    routes,
    background,
    store: mine,
    nodes,
    pausing: createPausing({
      core,
      quota,
      onPaused: () => undefined,
      observe: () => undefined,
      onParts: () => undefined,
    }),
    resuming: createResuming({
      core: patient,
      ending,
      elsewhere: { nodeFor: ({ home }) => Promise.resolve(home), bringBack: () => Promise.resolve(false) },
      observe: () => undefined,
      onParts: () => undefined,
    }),
    rewinding: createRewinding({
      core: patient,
      ending,
      elsewhere: { bringTo: () => Promise.resolve() },
      observe: () => undefined,
    }),
    checkpointing: createCheckpointing({ core, quota, onFailed: () => undefined }),
    networks: createNetworkUpdating({
      core,
      placeholders: { check: () => Promise.resolve() },
      tokenNames: () => new Set(),
    }),
  };
}
