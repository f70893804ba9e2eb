/** Reads seeds and keys, and the earlier ones of each, from the settings. */

import { readPrevious } from "../../shared/program/previous.ts";
import { createSeal, type KeyedSeal } from "../../shared/program/seal.ts";
import type { OrchestratorConfig } from "../config.ts";
import { createNodeKeys, type NodeKeys } from "./node-keys.ts";
import { createSeeds, type Seeds } from "./seeds.ts";

export interface Keyring {
  readonly seeds: Seeds;
  readonly nodeKeys: NodeKeys;
  readonly sealing: KeyedSeal;
}

export function readKeyring(config: OrchestratorConfig): Keyring {
  return {
    seeds: createSeeds(config.seed, readPrevious(config.seedPrevious)),
    nodeKeys: createNodeKeys(config.nodeKey, readPrevious(config.nodeKeyPrevious)),
    sealing: createSeal(config.encryptionKey, "SVC_ENCRYPTION_KEY", readPrevious(config.encryptionKeyPrevious)),
  };
}
