/** Connections to the internet, directly or through the sandbox's egress proxy; never directly instead of through it. */

import { connect, type Socket } from "node:net";
import type { EgressProxy } from "../../shared/policy/egress-policy.ts";
import { hostName } from "../../shared/policy/names.ts";
import { addressNumber, alwaysDenied, contains, parseRange } from "../../shared/policy/ranges.ts";
import type { Intake } from "./intake.ts";
import type { Names } from "./names.ts";
import { tunnel } from "./socks.ts";
import type { Target } from "./target.ts";

/** Of the whole way, names and proxy included. */
const LIMIT_MS = 30_000;
/** Of one address, where there is another one to try. */
const ADDRESS_LIMIT_MS = 5_000;
const KEEP_ALIVE_MS = 60_000;

export interface DialDeps {
  readonly names: Pick<Names, "addresses">;
  readonly isOwn: (address: string) => boolean;
  /** Where egress proxies may be although sandboxes never get there. */
  readonly proxyAllowedRanges: readonly string[];
}

export interface DialOptions {
  readonly port: number;
  readonly signal: AbortSignal;
  /** Only used for direct connections: the others are spoken with before they are the sandbox's. */
  readonly intake?: Intake;
}

export interface Dialled {
  readonly socket: Socket;
  /** What it sends is written by `DialOptions.intake`. */
  readonly taken: boolean;
}

/** Rejects when it cannot be reached; the message is for the log of decisions and names no proxy. */
export async function dial(target: Target, options: DialOptions, deps: DialDeps): Promise<Dialled> {
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(LIMIT_MS)]);
  switch (target.is) {
    case "refused":
      throw new Error("refused");
    case "direct": {
      const socket = await dialAddresses(target.addresses, { ...options, signal });
      return { socket, taken: options.intake !== undefined };
    }
    case "proxied": {
      const { proxy, host } = target;
      const addresses = await proxyAddresses(proxy, deps);
      const socket = await dialAddresses(addresses, { port: proxy.port, signal });
      return { socket: await tunnel(socket, proxy, { host, port: options.port, signal }), taken: false };
    }
  }
}

/** An operator's network is not to be probed by naming it as a proxy. */
async function proxyAddresses({ host }: EgressProxy, deps: DialDeps): Promise<readonly string[]> {
  const addresses = addressNumber(host) === undefined ? await lookUp(host, deps) : [host];
  const ranges = deps.proxyAllowedRanges.flatMap((text) => parseRange(text) ?? []);
  const allowed = addresses.filter((address) => {
    const number = addressNumber(address);
    if (number === undefined) return false;
    if (ranges.some((range) => contains(range, number))) return true;
    return alwaysDenied(number) === undefined && !deps.isOwn(address);
  });
  if (allowed.length === 0) throw new Error("the egress proxy has no address that it may have");
  return allowed;
}

async function lookUp(host: string, { names }: DialDeps): Promise<readonly string[]> {
  const name = hostName(host);
  return name === undefined ? [] : (await names.addresses(name)).addresses;
}

async function dialAddresses(addresses: readonly string[], options: DialOptions): Promise<Socket> {
  let failed: unknown = new Error("no address");
  for (const [index, address] of addresses.entries()) {
    const last = index === addresses.length - 1;
    try {
      return await dialAddress(address, options, last ? LIMIT_MS : ADDRESS_LIMIT_MS);
    } catch (error) {
      failed = error;
      if (options.signal.aborted) break;
    }
  }
  throw failed;
}

function dialAddress(host: string, { port, signal, intake }: DialOptions, limitMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    if (limit.aborted) return reject(limit.reason as Error);
    const socket = connect({
      host,
      port,
      autoSelectFamily: false,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      ...(intake === undefined ? {} : { onread: intake.onread }),
    });
    const abort = () => socket.destroy(limit.reason as Error);
    const settled = () => {
      limit.removeEventListener("abort", abort);
      socket.off("error", fail);
    };
    const fail = (error: Error) => {
      settled();
      reject(error);
    };
    limit.addEventListener("abort", abort, { once: true });
    socket.once("error", fail);
    socket.once("connect", () => {
      settled();
      // Whoever carries it listens for more than this; until then a reset is no reason to end the process.
      socket.on("error", () => undefined);
      intake?.from(socket);
      resolve(socket);
    });
  });
}
