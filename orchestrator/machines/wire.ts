/** Constructs what other machines meet: the authority, the orchestrator's certificate, and the handlers of a join. */

import { factsOf } from "../../shared/tls/credentials.ts";
import { nodeName } from "../../shared/tls/names.ts";
import { type Meeting } from "../../shared/tls/peers.ts";
import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { openAuthorities, ownCredentials } from "./authority.ts";
import { createEdgeAuthorityHandlers, createNodeAuthorityHandlers } from "./following.ts";
import {
  createEdgeJoinHandlers,
  createEdgeListHandlers,
  createEdgeMemberHandlers,
  createJoinHandlers,
  createJoinTokenHandlers,
  createMemberHandlers,
  createTokenCheck,
} from "./join.ts";

export type Machines = Awaited<ReturnType<typeof startMachines>>;

/** Without SVC_NODES_PORT nothing of it is made, but the routes of join tokens say so. */
export async function startMachines(
  base: Base,
  { machines: store, authorities: authorityStore }: Pick<Store, "machines" | "authorities">,
) {
  const { config, sealing, nodeKeys, now, log, teardown } = base;
  if (config.nodesPort === undefined) {
    return {
      meeting: () => undefined,
      joining: undefined,
      authorities: undefined,
      certificates: undefined,
      joinTokens: createJoinTokenHandlers(store, undefined, now),
      edges: createEdgeListHandlers(store),
    };
  }
  const authority = await openAuthorities({ store: authorityStore, sealing, now });
  const credentials = await ownCredentials(authority, { now, log, teardown, everyMs: config.reconcileEveryMs });
  const joinDeps = { store, authority, nodeKey: config.nodeKey, nodeKeys, now, log };
  return {
    /** How the orchestrator and its edge meet a node at an `https` address. */
    meeting: (nodeId: string): Meeting | undefined => ({ credentials, expects: nodeName(nodeId) }),
    joining: {
      credentials,
      handlers: createJoinHandlers(joinDeps),
      admits: createTokenCheck(store),
      memberHandlers: createMemberHandlers(joinDeps),
      edgeHandlers: createEdgeJoinHandlers(joinDeps),
      edgeMemberHandlers: createEdgeMemberHandlers(joinDeps),
      authorityHandlers: createNodeAuthorityHandlers({ store: authorityStore, authorities: authority }),
      edgeAuthorityHandlers: createEdgeAuthorityHandlers({ store: authorityStore, authorities: authority }),
      keyOf: (nodeId: string) => store.keyOf(nodeId),
      edgeOf: (keyDigest: string) => store.edgeOf(keyDigest),
    },
    authorities: authority,
    /** When those of this program and of the authorities end, Unix milliseconds. */
    certificates() {
      const { inForce, next } = authority.known;
      const all = [
        { name: "in_force" as const, of: inForce },
        ...(next === undefined ? [] : [{ name: "next" as const, of: next }]),
      ];
      return {
        own: factsOf(credentials.current.certificate).until,
        authorities: all.map(({ name, of }) => ({ name, until: factsOf(of.certificate).until })),
      };
    },
    joinTokens: createJoinTokenHandlers(store, authority, now),
    edges: createEdgeListHandlers(store),
  };
}
