/** Limits a server's connections, in all and per address, and chooses the connection to close when there is no room. */

import type { Socket } from "node:net";
import type { Room } from "../../program/descriptors.ts";
import type { Log } from "../../program/log.ts";
import { clientOf, isLoopback, plainAddress } from "./client-address.ts";

export interface ConnectionLimitsOptions extends Room {
  /** Name of the server in the log. */
  readonly name: string;
  /** Addresses of many clients, or of the platform, which have no limit per address. */
  readonly isShared?: (address: string) => boolean;
  readonly log: Log;
}

/** What a connection has proved: nothing yet, credentials of a project, or those of a node or operator. */
export type Rank = "stranger" | "known" | "ours";

export interface ConnectionLimits {
  /**
   * Counts the connection until it closes; returns false and destroys it when there is no room. When all are taken, the
   * connection that has been without credentials for longest is closed, so that callers with credentials get in.
   */
  admit(socket: Socket): boolean;
  readonly count: number;
}

const COMPLAIN_EVERY_MS = 10_000;
/** A connection may be counted by several limits: by those of the port it came to, and of the server that it was given to. */
const promotions = new WeakMap<Socket, ((rank: Rank) => void)[]>();
/** The connection that a stream came over. */
const carriers = new WeakMap<Socket, Socket>();

/** The stream is none of the limits' connections: the one that carries it is counted, and is promoted with it. */
export function carriedBy(stream: Socket, carrier: Socket): void {
  carriers.set(stream, carrier);
}

/** Must be called when a caller has sent valid credentials on the connection; ignored for an uncounted connection. */
export function promote(socket: Socket, rank: Rank): void {
  for (const counted of promotions.get(carriers.get(socket) ?? socket) ?? []) counted(rank);
}

export function connectionLimits(options: ConnectionLimitsOptions): ConnectionLimits {
  const { total, reserved, perAddress, name, log } = options;
  const isShared = (address: string) => isLoopback(address) || options.isShared?.(address) === true;
  const byAddress = new Map<string, number>();
  /** In the order of their arrival. */
  const strangers = new Set<Socket>();
  const held = { all: 0, ours: 0 };
  const refused = { count: 0, saidAt: 0 };

  const complain = (address: string, why: string) => {
    refused.count += 1;
    const now = Date.now();
    if (now - refused.saidAt < COMPLAIN_EVERY_MS) return;
    log.warn({ server: name, address, why, refused: refused.count, open: held.all }, "connections refused");
    refused.count = 0;
    refused.saidAt = now;
  };

  const makeRoom = (from: string): boolean => {
    if (held.all - held.ours < total - reserved) return true;
    const [oldest] = strangers;
    if (oldest !== undefined) {
      complain(from, "all are in use: closing the one that has been without credentials for longest");
      strangers.delete(oldest);
      oldest.destroy();
      return true;
    }
    return isShared(from) && held.all < total;
  };

  const take = (socket: Socket, address: string) => {
    let rank: Rank = "stranger";
    held.all += 1;
    byAddress.set(address, (byAddress.get(address) ?? 0) + 1);
    strangers.add(socket);
    const leaveAddress = () => {
      const left = (byAddress.get(address) ?? 1) - 1;
      if (left === 0) byAddress.delete(address);
      else byAddress.set(address, left);
    };
    const counted = promotions.get(socket) ?? [];
    promotions.set(socket, counted);
    counted.push((next) => {
      if (socket.destroyed || rank === "ours" || next === "stranger") return;
      strangers.delete(socket);
      if (next === "ours") {
        held.ours += 1;
        leaveAddress();
      }
      rank = next;
    });
    socket.once("close", () => {
      held.all -= 1;
      if (rank === "ours") held.ours -= 1;
      else leaveAddress();
      strangers.delete(socket);
    });
  };

  return {
    admit(socket) {
      if (carriers.has(socket)) return true;
      // The client disconnected before it was counted.
      if (socket.destroyed || socket.remoteAddress === undefined) {
        socket.destroy();
        return false;
      }
      const from = plainAddress(socket.remoteAddress);
      const address = clientOf(from);
      const tooMany = (byAddress.get(address) ?? 0) >= perAddress && !isShared(from);
      if (!tooMany && makeRoom(from)) {
        take(socket, address);
        return true;
      }
      complain(address, tooMany ? `${perAddress} of this address are open` : "all are in use");
      socket.destroy();
      return false;
    },
    get count() {
      return held.all;
    },
  };
}
