/**
 * Proves that a machine which joins is the node of this name already: the agent on the orchestrator's own machine, which has the node's
 * present token in its settings, before it has a key and after it has lost one. It shows that it has the token, and never sends it.
 */

import { createHmac } from "node:crypto";
import { sameSecret } from "../../ids.ts";

/** What the proof is for: it is of no use with another join token, under another name or for another key. */
export interface JoinClaim {
  readonly tokenId: string;
  readonly nodeId: string;
  /** SHA-256 of the public key that is to be the node's. */
  readonly keyDigest: string;
}

/** @param nodeToken what the node sends to the orchestrator */
export function joinProof(nodeToken: string, { tokenId, nodeId, keyDigest }: JoinClaim): string {
  return createHmac("sha256", nodeToken).update(`join\n${tokenId}\n${nodeId}\n${keyDigest}`).digest("base64url");
}

/** @param nodeTokens each token that the node may have now */
export function provesJoin(proof: string | undefined, nodeTokens: readonly string[], claim: JoinClaim): boolean {
  return proof !== undefined && nodeTokens.some((token) => sameSecret(proof, joinProof(token, claim)));
}
