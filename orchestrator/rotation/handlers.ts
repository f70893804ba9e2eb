/** Tells operators what still uses earlier seeds and keys, so that they know when to remove these. */

import type { rotationApi } from "../../shared/api/keys/rotation.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import type { Keyring } from "../base/keys/keyring.ts";
import type { NodeKeys } from "../base/keys/node-keys.ts";
import type { Seeds } from "../base/keys/seeds.ts";
import type { Replacing } from "../machines/replacing.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { SealedStore } from "../store/sealed/sealed.ts";
import type { SeedStore } from "../store/sealed/seeds.ts";
import type { Renewal } from "./renewal.ts";

export interface RotationDeps {
  readonly seeds: Seeds;
  readonly nodeKeys: NodeKeys;
  readonly nodes: Nodes;
  readonly seedStore: SeedStore;
  readonly sealed: SealedStore;
  readonly renewal: Renewal;
  readonly previous: Keyring["previous"];
  /** Undefined: the platform has no port for nodes. */
  readonly replacing: Pick<Replacing, "state"> | undefined;
}

export function createRotationHandlers(deps: RotationDeps): Handlers<typeof rotationApi> {
  const { seeds, nodeKeys, previous, renewal } = deps;
  return {
    async readRotation() {
      const nodes = deps.nodes.list().filter(({ id }) => nodeKeys.keyOf(id) !== nodeKeys.currentId);
      const earlierSeeds = seeds.ids.slice(1);
      const sandboxes = earlierSeeds.length === 0 ? 0 : await deps.seedStore.countLive(earlierSeeds);
      const values = await deps.sealed.countOld();
      const unreadable = Math.min(values, renewal.unreadable);
      const renewed = renewal.finished && values === unreadable;
      return {
        nodeKey: {
          previous: previous.nodeKeys,
          nodes: nodes.map(({ id }) => id),
          removable: previous.nodeKeys > 0 && nodes.length === 0,
        },
        metricsToken: { previous: previous.metricsTokens },
        sandboxSeed: {
          previous: earlierSeeds.length,
          sandboxes,
          removable: earlierSeeds.length > 0 && sandboxes === 0,
        },
        encryptionKey: {
          previous: previous.encryptionKeys,
          values,
          unreadable,
          removable: previous.encryptionKeys > 0 && renewed,
        },
        authority: (await deps.replacing?.state()) ?? null,
      };
    },
  };
}
