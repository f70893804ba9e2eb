/** How many connections a server of ours holds, of all and of one address, and who has to go when there is no room. */

import type { Socket } from "node:net";
import type { Log } from "../program/log.ts";
import { clientOf, isLoopback, plainAddress } from "./client-address.ts";

export interface Room {
  /** Connections at a time. */
  readonly total: number;
  /** Of those, kept for the platform's own programs and operators. */
  readonly reserved: number;
  /** Of one address (see `clientOf`). */
  readonly perAddress: number;
}

export interface ConnectionLimitsOptions extends Room {
  /** Says which server it is, in the log. */
  readonly name: string;
  /** Addresses that stand for many clients, or for the platform: no limit of their own. */
  readonly isShared?: (address: string) => boolean;
  readonly log: Log;
}

/** What a connection has shown: nothing yet, credentials of a project, those of a node or an operator. */
export type Rank = "stranger" | "known" | "ours";

export interface ConnectionLimits {
  /**
   * Counts the connection until it closes; false, and it is destroyed, when there is no room for it. When all is taken,
   * the connection that has shown nothing for longest makes room: so whoever has credentials gets to show them.
   */
  admit(socket: Socket): boolean;
  readonly count: number;
}

const COMPLAIN_EVERY_MS = 10_000;
const promotions = new WeakMap<Socket, (rank: Rank) => void>();

/** To be called when a caller has shown credentials on the connection; nothing for one that is not counted. */
export function promote(socket: Socket, rank: Rank): void {
  promotions.get(socket)?.(rank);
}

export function connectionLimits(options: ConnectionLimitsOptions): ConnectionLimits {
  const { total, reserved, perAddress, name, log } = options;
  const isShared = (address: string) => isLoopback(address) || options.isShared?.(address) === true;
  const byAddress = new Map<string, number>();
  /** In the order in which they came. */
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
      complain(from, "all are in use: the one that has shown nothing for longest is closed");
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
    promotions.set(socket, (next) => {
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
      // Gone before it was taken.
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
