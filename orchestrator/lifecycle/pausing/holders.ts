/**
 * Whether a visitor of the edge holds a token of a sandbox or a key of its project, so that it may learn that the
 * sandbox is paused. The tokens are checked against the id alone, before the record is read: an answer takes the same
 * time for a paused sandbox and for one that never existed.
 */

import { envdToken, isApiKey, sameSecret, trafficToken } from "../../../shared/ids.ts";
import type { Seeds } from "../../base/keys/seeds.ts";
import type { VisitorTokens } from "../../edge/sandbox-lookup.ts";
import { findSigner } from "../../edge/signed-url.ts";
import type { SandboxRecord } from "../../store/sandboxes/record.ts";

/** What a visitor has proved before the record is read. */
export interface Proof {
  /** It holds a token of the sandbox with this id, or a URL that was signed with one. */
  readonly token: boolean;
  /** The project of its API key. */
  readonly projectId: string | undefined;
}

export interface ProofDeps {
  readonly seeds: Pick<Seeds, "all">;
  /** The project of an API key; undefined for an unknown or revoked one. */
  readonly projectOf: (apiKey: string) => Promise<string | undefined>;
}

export async function proofOf(sandboxId: string, tokens: VisitorTokens, deps: ProofDeps): Promise<Proof> {
  const { apiKey } = tokens;
  return {
    token: deps.seeds.all.some((seed) => holdsToken(sandboxId, tokens, seed)),
    projectId: apiKey !== undefined && isApiKey(apiKey) ? await deps.projectOf(apiKey) : undefined,
  };
}

export function isHolder({ token, projectId }: Proof, record: Pick<SandboxRecord, "projectId">): boolean {
  return token || projectId === record.projectId;
}

// A sandbox with public traffic has a traffic token too, but no one has been given it.
function holdsToken(sandboxId: string, tokens: VisitorTokens, seed: string): boolean {
  const { trafficAccessTokens = [], envdAccessToken: given, signed } = tokens;
  if (trafficAccessTokens.length === 0 && given === undefined && signed === undefined) return false;
  const envdAccessToken = envdToken(seed, sandboxId);
  const traffic = trafficToken(seed, sandboxId);
  return (
    trafficAccessTokens.some((token) => sameSecret(token, traffic)) ||
    (given !== undefined && sameSecret(given, envdAccessToken)) ||
    (signed !== undefined && findSigner(signed, [{ envdAccessToken }]) !== undefined)
  );
}
