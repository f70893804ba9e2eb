/** Starts the renewal of what is sealed under earlier keys, and constructs the operators' handlers of every purpose's keys. */

import type { Base } from "../base/base.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Vault } from "../secrets/vault.ts";
import type { Store } from "../store/store.ts";
import { createRotationHandlers } from "./handlers.ts";
import { startRenewal } from "./renewal.ts";
import { createSecretKeyHandlers } from "./rewrap.ts";

interface RotationDeps {
  readonly store: Store;
  readonly vault: Vault;
  readonly nodes: Nodes;
}

/** Data keys of one transaction of a rewrap: each takes two calls of a key service. */
const BATCH = 50;

/** Returns the operators' handlers. */
export function startRotation(base: Base, { store, nodes, vault }: RotationDeps) {
  const { background, now, log, teardown, seeds, nodeKeys, previous } = base;
  const { sealed, seeds: seedStore } = store;
  const renewal = startRenewal({ sealed, background, log });
  teardown.add("renewal of sealed values", () => renewal.stop());
  return {
    rotation: createRotationHandlers({ seeds, nodeKeys, nodes, seedStore, sealed, renewal, previous }),
    secretKeys: createSecretKeyHandlers({ store: store.secrets, vault, now, log, batch: BATCH }),
  };
}
