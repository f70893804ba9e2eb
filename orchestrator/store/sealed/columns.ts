/** Every column that is sealed under the encryption key. A column that is not listed is lost when the key is replaced. */

import {
  authorityKeyContext,
  BUILD_SETTINGS_CONTEXT,
  identityKeyContext,
  networkChangeContext,
  networkContext,
  proxyPasswordContext,
  webhookSecretContext,
} from "./contexts.ts";

export interface SealedColumn {
  readonly table: string;
  /** The column that identifies a row. */
  readonly key: "id" | "kid";
  readonly column: string;
  /** The context of a row's value, by the row's key. */
  readonly context: (id: string) => string;
}

export const SEALED_COLUMNS: readonly SealedColumn[] = [
  { table: "sandboxes", key: "id", column: "envs", context: (id) => id },
  { table: "sandboxes", key: "id", column: "network", context: networkContext },
  { table: "sandboxes", key: "id", column: "proxy_password", context: proxyPasswordContext },
  { table: "sandboxes", key: "id", column: "network_change", context: networkChangeContext },
  { table: "builds", key: "id", column: "body", context: (id) => id },
  { table: "builds", key: "id", column: "settings", context: () => BUILD_SETTINGS_CONTEXT },
  { table: "webhooks", key: "id", column: "secret", context: webhookSecretContext },
  { table: "identity_keys", key: "kid", column: "private_key", context: identityKeyContext },
  { table: "authorities", key: "id", column: "private_key", context: authorityKeyContext },
];
