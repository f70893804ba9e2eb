/** Every key that the orchestrator holds, by its purpose, each with the earlier ones that stay valid while it is replaced. */

import { defined } from "../../../shared/defined.ts";
import type { Log } from "../../../shared/program/log.ts";
import { readPrevious } from "../../../shared/program/previous.ts";
import { createSeal, type KeyedSeal } from "../../../shared/program/sealing/seal.ts";
import type { OrchestratorConfig } from "../../config.ts";
import { createNodeKeys, type NodeKeys } from "./node-keys.ts";
import { keyCommand } from "./secrets/key-command.ts";
import { keyFile } from "./secrets/key-file.ts";
import { createSecretKeys, type SecretKeys } from "./secrets/secret-keys.ts";
import { createSeeds, type Seeds } from "./seeds.ts";
import { createVersions } from "./versions.ts";

export interface Keyring {
  /** The tokens of sandboxes. */
  readonly seeds: Seeds;
  /** The tokens of nodes. */
  readonly nodeKeys: NodeKeys;
  /** The tokens that read the metrics. */
  readonly metricsTokens: readonly string[];
  /** Columns of the database. */
  readonly sealing: KeyedSeal;
  /** The data keys of projects' secrets; undefined: the operator has set no key. */
  readonly secretKeys: SecretKeys | undefined;
  /** Ids of the keys that every orchestrator of a database must have, by their settings. */
  readonly shared: Readonly<Record<string, readonly string[]>>;
  /** Number of earlier keys that the settings name. */
  readonly previous: { readonly nodeKeys: number; readonly metricsTokens: number; readonly encryptionKeys: number };
}

interface KeyringDeps {
  /** Of the programs that the orchestrator starts. */
  readonly environment?: NodeJS.ProcessEnv | undefined;
  readonly log: Log;
}

export function createKeyring(config: OrchestratorConfig, { environment = {}, log }: KeyringDeps): Keyring {
  const nodeKeys = readPrevious(config.nodeKeyPrevious);
  const metricsTokens = readPrevious(config.metricsTokenPrevious);
  const encryptionKeys = readPrevious(config.encryptionKeyPrevious);
  const seeds = readPrevious(config.seedPrevious);
  return {
    seeds: createSeeds(config.seed, seeds),
    nodeKeys: createNodeKeys(config.nodeKey, nodeKeys),
    metricsTokens: [...(config.metricsToken === undefined ? [] : [config.metricsToken]), ...metricsTokens],
    sealing: createSeal(config.encryptionKey, "SVC_ENCRYPTION_KEY", encryptionKeys),
    secretKeys: createSecretKeys({ sources: secretSources(config, environment), log }),
    shared: {
      SVC_NODE_KEY: createVersions("shared node key", config.nodeKey, nodeKeys).ids,
      SVC_SEED: createVersions("shared seed", config.seed, seeds).ids,
      SVC_ENCRYPTION_KEY: createVersions("shared encryption key", config.encryptionKey, encryptionKeys).ids,
    },
    previous: {
      nodeKeys: nodeKeys.length,
      metricsTokens: metricsTokens.length,
      encryptionKeys: encryptionKeys.length,
    },
  };
}

function secretSources(config: OrchestratorConfig, environment: NodeJS.ProcessEnv) {
  const { secretsKeyFile: path, secretsKeyCommand: command, secretsKeyName: name, secretsKeyCommandMs } = config;
  return defined({
    file: path === undefined ? undefined : keyFile(path),
    command:
      command === undefined ? undefined : keyCommand({ command, name, timeoutMs: secretsKeyCommandMs, environment }),
  });
}
