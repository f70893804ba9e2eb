/** Constructs the signing keys, the issuer of workload identity tokens and the handlers of both. */

import { AppError } from "../../shared/http/errors.ts";
import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { createDiscoveryHandlers, createIdentityHandlers } from "./handlers.ts";
import { createSigningKeys } from "./keys.ts";
import { trustDomainOf } from "./subject.ts";
import { createTokenIssuer } from "./tokens.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const ROUND_MS = MINUTE_MS;

export interface WorkloadIdentityDeps {
  readonly store: Store;
  /** The API's own address; undefined until it listens. */
  readonly apiUrl: () => string | undefined;
}

/** Resolves when there is a key to sign with. */
export async function startWorkloadIdentity(
  base: Pick<Base, "config" | "sealing" | "now" | "log" | "teardown" | "rounds">,
  { store, apiUrl }: WorkloadIdentityDeps,
) {
  const { config, sealing, now, log, teardown } = base;
  const tokenMs = config.identityTokenMinutes * MINUTE_MS;
  const aheadMs = config.identityPublishAheadMinutes * MINUTE_MS;
  const keys = createSigningKeys({
    store: store.identity,
    sealing,
    now,
    log: log.child({ part: "identity" }),
    algorithm: config.identityAlgorithm,
    tokenMs,
    aheadMs,
    rotateMs: config.identityRotateDays * DAY_MS,
  });
  await keys.start();
  const keeping = base.rounds({ name: "identity keys", everyMs: ROUND_MS, log }, () => keys.round());
  teardown.add("identity keys", () => keeping.stop());

  function issuer(): string {
    const known = config.identityIssuer ?? config.publicUrl ?? apiUrl();
    if (known === undefined) throw new AppError("unavailable", "the platform does not know its own address yet");
    return known.replace(/\/+$/, "");
  }
  const trustDomain = () => config.identityTrustDomain ?? trustDomainOf(issuer());
  return {
    /** Work that is due by time; runs by itself, too. */
    round: () => keys.round(),
    tokens: createTokenIssuer({ keys, issuer, trustDomain, tokenMs, now }),
    handlers: {
      discovery: createDiscoveryHandlers({ keys, issuer, aheadMs }),
      identity: createIdentityHandlers(keys),
    },
  };
}
