/** The contexts in which columns are sealed: a value that was sealed in one opens in no other. */

export function networkContext(sandboxId: string): string {
  return `${sandboxId} network`;
}

export function proxyPasswordContext(sandboxId: string): string {
  return `${sandboxId} network.egressProxy.password`;
}

/** One context for all builds, because a snapshot's build copies its sandbox's sealed settings unchanged. */
export const BUILD_SETTINGS_CONTEXT = "build settings";

export function networkChangeContext(sandboxId: string): string {
  return `${sandboxId} network change`;
}

export function webhookSecretContext(webhookId: string): string {
  return `${webhookId} webhook`;
}

export function authorityKeyContext(id: string): string {
  return `${id} authority key`;
}

export function identityKeyContext(kid: string): string {
  return `${kid} identity key`;
}
