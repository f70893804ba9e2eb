/** What the proxy variables of the environment have to do with an address that gives no answer. Pure. */

import type { Environment } from "./contexts.ts";

const OF_THIS_MACHINE = /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\])$/;

/** A second way out where a proxy is named and Node does not use it, as curl would, or where it does. Undefined: neither. */
export function proxyWords(env: Environment, address: string): string | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, hostname } = new URL(address);
  const scheme = protocol.slice(0, -1);
  const name = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`].find((one) => (env[one] ?? "") !== "");
  if (name === undefined) return undefined;
  if (env["NODE_USE_ENV_PROXY"] === "1") {
    return `the request went through the proxy of ${name}, unless no_proxy has the host: no_proxy=${hostname} leads it there straight`;
  }
  if (OF_THIS_MACHINE.test(hostname)) return undefined;
  return `${name} names a proxy, which is used with NODE_USE_ENV_PROXY=1 alone: set it where ${hostname} is behind that proxy`;
}
