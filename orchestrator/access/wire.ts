/** Constructs what knows the callers: API keys with their owners and uses, and what a project may have. */

import { loop } from "../../shared/program/loop.ts";
import type { Base } from "../base/base.ts";
import type { Store } from "../store/store.ts";
import { createAdminTokens } from "./admin-tokens.ts";
import { createIdentity } from "./key-cache.ts";
import { createKeyUses } from "./key-uses.ts";
import { createKeys } from "./keys.ts";
import { createLimits } from "./limits.ts";
import { createRefusals } from "./refusals.ts";

/** Time between two writes of when keys were used. */
const KEY_USES_MS = 5_000;

export type Callers = ReturnType<typeof startCallers>;

export function startCallers({ config, now, log, teardown, feed }: Base, store: Store) {
  const uses = createKeyUses({ keys: store.keys, now });
  const writing = loop({ name: "uses of keys", everyMs: KEY_USES_MS, log }, () => uses.flush());
  teardown.add("uses of keys", async () => {
    await writing.stop();
    await uses.flush();
  });
  const identity = createIdentity({ keys: store.keys, uses, now, feed });
  return {
    identity,
    adminTokens: createAdminTokens({ token: config.adminToken, file: config.adminTokenFile, now, log }),
    keys: createKeys({ keys: store.keys, uses, identity, now }),
    limits: createLimits(config),
    refusals: createRefusals({ store, now, contact: config.supportContact }),
  };
}
