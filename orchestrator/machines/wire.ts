/** Constructs what other machines meet: the authority, the orchestrator's certificate, and the handlers of a join. */

import { nodeName } from "../../shared/tls/names.ts";
import { type Meeting } from "../../shared/tls/peers.ts";
import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { ownCredentials, platformAuthority } from "./authority.ts";
import {
  createEdgeJoinHandlers,
  createEdgeListHandlers,
  createEdgeMemberHandlers,
  createJoinHandlers,
  createJoinTokenHandlers,
  createMemberHandlers,
} from "./join.ts";

export type Machines = Awaited<ReturnType<typeof startMachines>>;

/** Without SVC_NODES_PORT nothing of it is made, but the routes of join tokens say so. */
export async function startMachines(base: Base, { machines: store }: Pick<Store, "machines">) {
  const { config, sealing, nodeKeys, now, log } = base;
  if (config.nodesPort === undefined) {
    return {
      meeting: () => undefined,
      joining: undefined,
      joinTokens: createJoinTokenHandlers(store, undefined, now),
      edges: createEdgeListHandlers(store),
    };
  }
  const authority = await platformAuthority({ store, sealing, now });
  const credentials = await ownCredentials(authority, base);
  const joinDeps = { store, authority, nodeKey: config.nodeKey, nodeKeys, now, log };
  return {
    /** How the orchestrator and its edge meet a node at an `https` address. */
    meeting: (nodeId: string): Meeting | undefined => ({ credentials, expects: nodeName(nodeId) }),
    joining: {
      credentials,
      handlers: createJoinHandlers(joinDeps),
      memberHandlers: createMemberHandlers(joinDeps),
      edgeHandlers: createEdgeJoinHandlers(joinDeps),
      edgeMemberHandlers: createEdgeMemberHandlers(joinDeps),
      keyOf: (nodeId: string) => store.keyOf(nodeId),
      edgeOf: (keyDigest: string) => store.edgeOf(keyDigest),
    },
    joinTokens: createJoinTokenHandlers(store, authority, now),
    edges: createEdgeListHandlers(store),
  };
}
