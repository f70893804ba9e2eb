/**
 * How this node and its platform meet: the tokens of each call, and, once the machine has joined, the certificates of each
 * connection. A renewal changes both without a restart.
 */

import { type LiveCredentials, liveCredentials } from "../../shared/tls/live.ts";
import { EDGE, ORCHESTRATOR } from "../../shared/tls/names.ts";
import type { Door, Meeting } from "../../shared/tls/peers.ts";
import type { Membership } from "./membership.ts";

export interface Peering {
  /** What this node sends to the orchestrator. */
  readonly nodeToken: string;
  /** Each of these opens this node. */
  readonly orchestratorTokens: readonly string[];
  /** How the orchestrator is met; undefined: over loopback, or by its host name. */
  readonly meeting: Meeting | undefined;
  /** The agent API's: other nodes get in for what this one offers them, strangers for the pages of operators. Undefined: plain HTTP. */
  readonly apiDoor: Door | undefined;
  /** The node proxy's. */
  readonly proxyDoor: Door | undefined;
  readonly member: Member | undefined;
}

/** A node that has joined. */
interface Member {
  readonly credentials: LiveCredentials;
  /** Shows the renewed certificate on the next connection; former tokens of the orchestrator stay valid. */
  renewed(next: Membership): void;
}

export interface Tokens {
  readonly nodeToken: string;
  readonly orchestratorToken: string;
}

/** @param previous earlier tokens of the orchestrator, which stay valid */
export function peeringByTokens({ nodeToken, orchestratorToken }: Tokens, previous: readonly string[]): Peering {
  return {
    nodeToken,
    orchestratorTokens: [orchestratorToken, ...previous],
    meeting: undefined,
    apiDoor: undefined,
    proxyDoor: undefined,
    member: undefined,
  };
}

export function peeringOfMember(first: Membership): Peering {
  const credentials = liveCredentials(first.credentials);
  let { nodeToken } = first;
  let orchestratorTokens: readonly string[] = [first.orchestratorToken];
  return {
    get nodeToken() {
      return nodeToken;
    },
    get orchestratorTokens() {
      return orchestratorTokens;
    },
    meeting: { credentials, expects: ORCHESTRATOR },
    apiDoor: { credentials, admits: (name) => name !== EDGE },
    proxyDoor: { credentials, admits: (name) => name === ORCHESTRATOR || name === EDGE },
    member: {
      credentials,
      renewed(next) {
        // The orchestrator goes over to its new token when it has seen this node's.
        orchestratorTokens = [...new Set([next.orchestratorToken, ...orchestratorTokens])];
        nodeToken = next.nodeToken;
        credentials.replace(next.credentials);
      },
    },
  };
}

/** For calls to the orchestrator. */
export function authorization(peering: Pick<Peering, "nodeToken">): { readonly authorization: string } {
  return { authorization: `Bearer ${peering.nodeToken}` };
}
