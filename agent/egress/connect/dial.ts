/** Connections to the internet, directly or through the sandbox's egress proxy; never directly instead of through it. */

import { connect, type Socket } from "node:net";
import type { EgressProxy } from "../../../shared/policy/egress-policy.ts";
import { hostName } from "../../../shared/policy/names.ts";
import { addressNumber, alwaysDenied, contains, parseRange } from "../../../shared/policy/ranges.ts";
import { within } from "../../../shared/program/deadline.ts";
import { readDespiteFailedWrites } from "../../../shared/proxy/sockets/patient.ts";
import { type LargeBuffers, openIntake } from "../carry/intake.ts";
import { ConnectError } from "../destinations/connect-error.ts";
import type { Target } from "../destinations/target.ts";
import type { Names } from "../dns/names.ts";
import { connectTunnel } from "./http-connect.ts";
import { tunnel } from "./socks.ts";

/** Limit of the whole way, names and proxy included. */
const LIMIT_MS = 30_000;
/** Limit of one address, where there is another one to try. */
const ADDRESS_LIMIT_MS = 5_000;
const KEEP_ALIVE_MS = 60_000;

export interface DialDeps {
  readonly names: Pick<Names, "addresses">;
  readonly isOwn: (address: string) => boolean;
  /** Ranges in which egress proxies may be although sandboxes never reach them. */
  readonly proxyAllowedRanges: readonly string[];
}

export interface DialOptions {
  readonly port: number;
  readonly signal: AbortSignal;
  /** Gives the socket an intake. Absent where TLS will read from the socket's handle. */
  readonly buffers?: LargeBuffers;
  /** To the company's proxy itself, which gets requests with whole addresses. */
  readonly plain?: boolean;
}

/** Destination, sandbox and deadline of a connection. */
interface DialAttempt extends DialOptions {
  /** By the monotonic time of the process. */
  readonly until: number;
}

/** Rejects when the destination cannot be reached; the message is for the log of decisions and names no proxy. */
export async function dial(target: Target, options: DialOptions, deps: DialDeps): Promise<Socket> {
  const until = performance.now() + LIMIT_MS;
  switch (target.is) {
    case "refused":
      throw new ConnectError("refused");
    case "direct":
      return dialAddresses(target.addresses, { ...options, until });
    case "proxied": {
      const { proxy, host } = target;
      return within(LIMIT_MS, async (limit) => {
        const signal = AbortSignal.any([options.signal, limit]);
        const addresses = await proxyAddresses(proxy, deps);
        const toProxy = { ...options, port: proxy.port, until };
        const socket = await dialAddresses(addresses, toProxy).catch((error: unknown) => {
          throw options.signal.aborted
            ? error
            : new ConnectError(`egress proxy: it cannot be reached (${codeOf(error)})`);
        });
        return tunnel(socket, proxy, { host, port: options.port, signal });
      });
    }
    case "company": {
      const { proxy, host } = target;
      return within(LIMIT_MS, async (limit) => {
        const signal = AbortSignal.any([options.signal, limit]);
        // The operator has named it: it may be at an address that sandboxes never reach.
        const addresses = addressNumber(proxy.host) === undefined ? await lookUp(proxy.host, deps) : [proxy.host];
        if (addresses.length === 0) throw new ConnectError("the name of the company's proxy has no address");
        const { buffers: _, ...unbuffered } = options;
        const toProxy = { ...unbuffered, port: proxy.port, until };
        const socket = await dialAddresses(addresses, toProxy).catch((error: unknown) => {
          throw new ConnectError(`the company's proxy cannot be reached: ${codeOf(error)}`);
        });
        return options.plain === true ? socket : connectTunnel(socket, proxy, { host, port: options.port, signal });
      });
    }
  }
}

/** A sandbox must not probe an operator's network by naming its hosts as proxies. */
async function proxyAddresses({ host }: EgressProxy, deps: DialDeps): Promise<readonly string[]> {
  const addresses = addressNumber(host) === undefined ? await lookUp(host, deps) : [host];
  const ranges = deps.proxyAllowedRanges.flatMap((text) => parseRange(text) ?? []);
  const allowed = addresses.filter((address) => {
    const number = addressNumber(address);
    if (number === undefined) return false;
    if (ranges.some((range) => contains(range, number))) return true;
    return alwaysDenied(number) === undefined && !deps.isOwn(address);
  });
  if (allowed.length === 0) throw new ConnectError("the egress proxy has no address that it may have");
  return allowed;
}

function codeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return String(typeof code === "string" ? code : message);
}

async function lookUp(host: string, { names }: DialDeps): Promise<readonly string[]> {
  const name = hostName(host);
  return name === undefined ? [] : (await names.addresses(name)).addresses;
}

async function dialAddresses(addresses: readonly string[], options: DialAttempt): Promise<Socket> {
  let failed: unknown = new ConnectError("no address");
  for (const [index, address] of addresses.entries()) {
    const last = index === addresses.length - 1;
    const until = last ? options.until : Math.min(options.until, performance.now() + ADDRESS_LIMIT_MS);
    try {
      return await dialAddress(address, { ...options, until });
    } catch (error) {
      failed = error;
      if (options.signal.aborted || performance.now() >= options.until) break;
    }
  }
  throw failed;
}

// Uses a timer and one listener: composite signals would be among the most expensive steps of a connection.
function dialAddress(host: string, { port, signal, buffers, until }: DialAttempt): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const intake = buffers === undefined ? undefined : openIntake(buffers);
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
    const abort = () => socket.destroy(signal.reason as Error);
    const late = () => socket.destroy(new ConnectError("the destination did not answer in time"));
    const timer = setTimeout(late, Math.max(until - performance.now(), 0));
    const settled = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      socket.off("error", fail);
    };
    const fail = (error: Error) => {
      settled();
      reject(error);
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", fail);
    socket.once("connect", () => {
      settled();
      // The relay adds its own listeners later; until then a reset must not end the process as an unhandled error.
      socket.on("error", () => undefined);
      intake?.from(socket);
      resolve(readDespiteFailedWrites(socket));
    });
  });
}
