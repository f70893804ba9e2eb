/** Keeps the egress proxy's password apart from the options, which callers can read, and seals it. */

import type { NetworkOptions } from "../../shared/api/network.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { proxyPasswordContext as context } from "../store/sealed/contexts.ts";

interface Split {
  readonly network: NetworkOptions | undefined;
  readonly proxyPassword: string | undefined;
}

/** Splits the options into those without the password and the password. */
export function splitPassword(network: NetworkOptions | undefined): Split {
  if (!network?.egressProxy) return { network, proxyPassword: undefined };
  const { password: proxyPassword, ...egressProxy } = network.egressProxy;
  return { network: { ...network, egressProxy }, proxyPassword };
}

/** Binds the sealed value to its sandbox and its purpose, so that no other sealed value can replace it. */
export function sealPassword(sealing: Seal, password: string | undefined, sandboxId: string): string | undefined {
  return password === undefined ? undefined : sealing.close(password, context(sandboxId));
}

export function openPassword(sealing: Seal, sealed: string | undefined, sandboxId: string): string | undefined {
  return sealed === undefined ? undefined : sealing.open(sealed, context(sandboxId));
}
