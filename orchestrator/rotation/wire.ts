/** Starts the renewal of what is sealed under earlier keys, and constructs the operators' handlers of every purpose's keys. */

import type { Base } from "../base/base.ts";
import { createAuthorityRotationHandlers, createReplacing } from "../machines/replacing.ts";
import type { Machines } from "../machines/wire.ts";
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
  /** Undefined: the platform has no port for nodes. */
  readonly authorities: Machines["authorities"];
}

/** Data keys of one transaction of a rewrap: each takes two calls of a key service. */
const BATCH = 50;

/** Rounds in which each orchestrator has surely read what another one has written. */
const GRACE_ROUNDS = 12;

/** Returns the operators' handlers. */
export function startRotation(base: Base, { store, nodes, vault, authorities }: RotationDeps) {
  const { background, now, log, teardown, seeds, nodeKeys, previous } = base;
  const { sealed, seeds: seedStore } = store;
  const replacing = startReplacing(base, { store, nodes, authorities });
  const renewal = startRenewal({ sealed, background, log });
  teardown.add("renewal of sealed values", () => renewal.stop());
  return {
    rotation: createRotationHandlers({ seeds, nodeKeys, nodes, seedStore, sealed, renewal, previous, replacing }),
    authorityRotation: createAuthorityRotationHandlers(replacing),
    secretKeys: createSecretKeyHandlers({ store: store.secrets, vault, now, log, batch: BATCH }),
  };
}

function startReplacing(base: Base, { store, nodes, authorities }: Omit<RotationDeps, "vault">) {
  if (authorities === undefined) return undefined;
  const { config, sealing, now, log, rounds, teardown } = base;
  const everyMs = config.reconcileEveryMs;
  const heardAt = (nodeId: string) => nodes.list().find(({ id }) => id === nodeId)?.lastHeardAt;
  const graceMs = GRACE_ROUNDS * everyMs;
  const replacing = createReplacing({ store: store.authorities, authorities, sealing, heardAt, graceMs, now, log });
  const running = rounds({ name: "replacement of the authority", everyMs, log }, () => replacing.round());
  teardown.add("replacement of the authority", () => running.stop());
  return replacing;
}
