/**
 * The orchestrators of the platform. The node talks to one of them at a time, and goes to the next when that one does not
 * answer or cannot work. It prefers none: it stays with the one that answers.
 */

import { type Connection, type ConnectOptions, connect } from "../../shared/http/client.ts";
import type { Contract } from "../../shared/http/contract.ts";
import { AppError, type ErrorCode } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";

export interface Orchestrators {
  /** Where the node asks first at the moment. */
  readonly current: string;
  /**
   * Asks one after another until one answers. @throws the error of the last one, or the first that is an answer
   * @param elsewhere whether another orchestrator may answer what this one did not; absent: when it is away or cannot work
   */
  ask<T>(work: (url: string) => Promise<T>, elsewhere?: (error: unknown) => boolean): Promise<T>;
}

/** @param setting addresses with commas between them */
export function urlsIn(setting: string): string[] {
  return setting.split(",").map((url) => url.trim().replace(/\/$/, ""));
}

/** The orchestrator is away, or its database is. Everything else is what each of them would answer. */
const AWAY: ReadonlySet<ErrorCode> = new Set(["node_unreachable", "unavailable", "internal"]);

/** @param setting as `urlsIn` takes it */
export function createOrchestrators(setting: string, log: Pick<Log, "warn">): Orchestrators {
  const urls = urlsIn(setting);
  let at = 0;
  const current = () => urls[at] ?? setting;
  return {
    get current() {
      return current();
    },
    async ask(work, elsewhere = isAway) {
      const first = at;
      for (let tried = 1; ; tried++) {
        const url = urls[(first + tried - 1) % urls.length] ?? setting;
        try {
          return await work(url);
        } catch (error) {
          if (!elsewhere(error) || urls.length === 1) throw error;
          // Another call may have gone on already. The node stays with one that has answered, but not with what was asked for.
          if (current() === url && isAway(error)) {
            at = (at + 1) % urls.length;
            log.warn({ err: error, from: url, to: current() }, "an orchestrator does not answer: asking the next one");
          }
          if (tried === urls.length) throw error;
        }
      }
    },
  };
}

export function isAway(error: unknown): boolean {
  return error instanceof AppError && AWAY.has(error.code);
}

type Call = (given: never, options?: never) => Promise<unknown>;

/** As `connect`, to the one of the orchestrators that answers. */
export function connectToAny<const C extends Contract>(
  contract: C,
  { orchestrators, ...options }: Omit<ConnectOptions, "url"> & { readonly orchestrators: Orchestrators },
): Connection<C> {
  const connections = new Map<string, Connection<C>>();
  const to = (url: string): Connection<C> => {
    const known = connections.get(url) ?? connect(contract, { ...options, url });
    connections.set(url, known);
    return known;
  };
  const call = Object.fromEntries(
    Object.keys(contract).map((name): [string, Call] => [
      name,
      (given, callOptions) =>
        orchestrators.ask(
          (url) => (to(url).call as Readonly<Record<string, Call>>)[name]?.(given, callOptions) ?? never(),
        ),
    ]),
  ) as unknown as Connection<C>["call"];
  return {
    call,
    async close() {
      await Promise.all([...connections.values()].map((connection) => connection.close()));
    },
  };
}

function never(): never {
  throw new Error("the contract has no such route");
}
