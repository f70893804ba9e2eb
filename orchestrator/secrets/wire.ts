/** Constructs what keeps secrets, and the handlers of their three kinds of callers: projects, operators, nodes. */

import { defined } from "../../shared/defined.ts";
import type { Base } from "../base/base.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import { createSecretHandlers } from "./handlers.ts";
import { keyCommand } from "./keys/key-command.ts";
import { keyFile } from "./keys/key-file.ts";
import { createKeyring } from "./keys/keyring.ts";
import { createPlaceholderCheck } from "./placeholder-check.ts";
import { createSecretKeyHandlers } from "./rewrap.ts";
import { createValueHandlers, type ValueHandlersDeps } from "./values.ts";
import { createVault } from "./vault.ts";

interface SecretsDeps {
  readonly store: Store;
  readonly tokens: ValueHandlersDeps["tokens"];
  readonly onFirstUse: ValueHandlersDeps["onFirstUse"];
}

/** Data keys of one transaction of a rewrap: each takes two calls of a key service. */
const BATCH = 50;

/** Rejects when the key file cannot be used. */
export async function createSecrets(base: Base, { store, tokens, onFirstUse }: SecretsDeps) {
  const { config, sealing, now, log, environment = {} } = base;
  const vault = createVault(createKeyring({ sources: await keySources(config, environment), log }));
  return {
    placeholders: createPlaceholderCheck(store.secrets),
    tokenNames: (record: SandboxRecord) => tokens.names(record),
    handlers: {
      secrets: createSecretHandlers({ store: store.secrets, vault, most: config.maxProjectSecrets }),
      secretKeys: createSecretKeyHandlers({ store: store.secrets, vault, now, log, batch: BATCH }),
      values: createValueHandlers({ store, vault, sealing, tokens, onFirstUse, now }),
    },
  };
}

async function keySources(config: OrchestratorConfig, environment: NodeJS.ProcessEnv) {
  const { secretsKeyFile: path, secretsKeyCommand: command, secretsKeyName: name, secretsKeyCommandMs } = config;
  const file = path === undefined ? undefined : keyFile(path);
  await file?.check();
  return {
    ...defined({ file }),
    ...(command === undefined
      ? {}
      : { command: keyCommand({ command, name, timeoutMs: secretsKeyCommandMs, environment }) }),
  };
}
