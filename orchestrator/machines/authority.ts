/** The platform's authority from the store, made when there is none; and this orchestrator's own certificate, kept fresh. */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import type { Teardown } from "../../shared/program/teardown.ts";
import { type Authority, makePlatformAuthority, openAuthority } from "../../shared/tls/authority.ts";
import { factsOf, renewalAt } from "../../shared/tls/credentials.ts";
import { type LiveCredentials, liveCredentials } from "../../shared/tls/live.ts";
import { ORCHESTRATOR } from "../../shared/tls/names.ts";
import type { MachineStore } from "../store/machines/machines.ts";
import { authorityKeyContext } from "../store/sealed/contexts.ts";

const LOOK_EVERY_MS = 600_000;
const ID = "platform";

interface AuthorityDeps {
  readonly store: Pick<MachineStore, "authority">;
  readonly sealing: Seal;
  readonly now: () => number;
}

export async function platformAuthority({ store, sealing, now }: AuthorityDeps): Promise<Authority> {
  const { certificate, sealedKey } = await store.authority(async () => {
    const made = await makePlatformAuthority(now());
    const sealed = sealing.close(made.key, authorityKeyContext(ID));
    return { id: ID, certificate: made.certificate, sealedKey: sealed, createdAt: now() };
  });
  return openAuthority({ certificate, key: sealing.open(sealedKey, authorityKeyContext(ID)) });
}

/** The key is made at each start and is nowhere but in memory. */
export async function ownCredentials(
  authority: Authority,
  { now, log, teardown }: { readonly now: () => number; readonly log: Log; readonly teardown: Teardown },
): Promise<LiveCredentials> {
  const own = liveCredentials(await authority.issue(ORCHESTRATOR, now()));
  const renewing = loop({ name: "own certificate", everyMs: LOOK_EVERY_MS, log }, async () => {
    if (now() < renewalAt(factsOf(own.current.certificate))) return;
    own.replace(await authority.issue(ORCHESTRATOR, now()));
    log.info("renewed the orchestrator's certificate");
  });
  teardown.add("own certificate", () => renewing.stop());
  return own;
}
