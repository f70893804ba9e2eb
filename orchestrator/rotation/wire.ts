/** Starts the renewal of what is sealed under earlier keys, and constructs the operators' handlers. */

import { readPrevious } from "../../shared/program/previous.ts";
import type { Base } from "../base/base.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Store } from "../store/store.ts";
import { createRotationHandlers } from "./handlers.ts";
import { startRenewal } from "./renewal.ts";

interface StartRotationDeps {
  readonly store: Store;
  readonly nodes: Pick<Nodes, "list">;
}

/** Returns the operators' handlers. */
export function startRotation(base: Base, { store, nodes }: StartRotationDeps) {
  const { config, background, log, teardown, seeds, nodeKeys } = base;
  const renewal = startRenewal({ sealed: store.sealed, background, log });
  teardown.add("renewal of sealed values", () => renewal.stop());
  return createRotationHandlers({
    seeds,
    nodeKeys,
    nodes,
    seedStore: store.seeds,
    sealed: store.sealed,
    renewal,
    previous: {
      nodeKeys: readPrevious(config.nodeKeyPrevious).length,
      metricsTokens: readPrevious(config.metricsTokenPrevious).length,
      encryptionKeys: readPrevious(config.encryptionKeyPrevious).length,
    },
  });
}
