/** Answers machines that have joined which authorities they have to trust, and notes what they say of themselves. */

import type { edgeAuthorityApi, nodeAuthorityApi, Told } from "../../shared/agent-api/joining/authority-shapes.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import type { AuthorityStore } from "../store/machines/authorities.ts";
import type { Authorities } from "./authority.ts";
import type { EdgeCaller } from "./join.ts";

export interface FollowingDeps {
  readonly store: Pick<AuthorityStore, "say">;
  readonly authorities: Pick<Authorities, "refresh">;
}

export function createNodeAuthorityHandlers(deps: FollowingDeps): Handlers<typeof nodeAuthorityApi, string> {
  return {
    async nodeAuthorities({ body }, { caller: nodeId }) {
      await deps.store.say("node", nodeId, body);
      return told(deps);
    },
  };
}

export function createEdgeAuthorityHandlers(deps: FollowingDeps): Handlers<typeof edgeAuthorityApi, EdgeCaller> {
  return {
    async edgeAuthorities({ body }, { caller: { edgeId } }) {
      await deps.store.say("edge", edgeId, body);
      return told(deps);
    },
  };
}

async function told({ authorities }: FollowingDeps): Promise<Told> {
  const { trusted, signer } = await authorities.refresh();
  return { trusted: [...trusted], issuer: signer.digest };
}
