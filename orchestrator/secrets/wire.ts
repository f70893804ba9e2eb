/** Constructs what keeps secrets, and the handlers of their callers: projects and nodes. */

import type { Base } from "../base/base.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";
import { createSecretHandlers } from "./handlers.ts";
import { createPlaceholderCheck } from "./placeholder-check.ts";
import { createValueHandlers, type ValueHandlersDeps } from "./values.ts";
import { createVault } from "./vault.ts";

interface SecretsDeps {
  readonly store: Store;
  readonly tokens: ValueHandlersDeps["tokens"];
  readonly onFirstUse: ValueHandlersDeps["onFirstUse"];
}

/** Rejects when the key file cannot be used. */
export async function createSecrets(base: Base, { store, tokens, onFirstUse }: SecretsDeps) {
  const { config, sealing, secretKeys, now } = base;
  await secretKeys?.check();
  const vault = createVault(secretKeys);
  return {
    vault,
    placeholders: createPlaceholderCheck(store.secrets),
    tokenNames: (record: SandboxRecord) => tokens.names(record),
    handlers: {
      secrets: createSecretHandlers({ store: store.secrets, vault, most: config.maxProjectSecrets }),
      values: createValueHandlers({ store, vault, sealing, tokens, onFirstUse, now }),
    },
  };
}
