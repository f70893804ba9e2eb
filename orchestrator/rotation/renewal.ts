/**
 * Renews sealed values in the background until all are under the current encryption key, a few at a time. Every step is one
 * transaction, so after a crash the next start goes on with the values that are left.
 */

import type { Log } from "../../shared/program/log.ts";
import type { Background } from "../base/background.ts";
import type { SealedStore } from "../store/sealed/sealed.ts";

export interface Renewal {
  /** Values that none of the keys opens, as far as the renewal has come. */
  readonly unreadable: number;
  /** False: it is under way, or it failed and the next start tries again. */
  readonly finished: boolean;
  stop(): void;
}

export interface RenewalDeps {
  readonly sealed: SealedStore;
  readonly background: Background;
  readonly log: Log;
}

const AT_ONCE = 100;

export function startRenewal({ sealed, background, log }: RenewalDeps): Renewal {
  const state = { unreadable: 0, renewed: 0, finished: false, stopped: false };

  async function renewAll(): Promise<void> {
    for (const column of sealed.columns) {
      let after: string | undefined = "";
      while (after !== undefined && !state.stopped) {
        const { last, renewed, unreadable } = await sealed.renew(column, { after, limit: AT_ONCE });
        state.renewed += renewed;
        state.unreadable += unreadable;
        after = last;
        // Requests come between two steps.
        await new Promise(setImmediate);
      }
    }
    if (state.stopped) return;
    state.finished = true;
    const { renewed, unreadable } = state;
    if (renewed > 0) log.info({ renewed }, "all sealed values are under the current encryption key");
    if (unreadable > 0) log.warn({ unreadable }, "sealed values open with none of the encryption keys");
  }

  background.run("renew sealed values", renewAll);
  return {
    get unreadable() {
      return state.unreadable;
    },
    get finished() {
      return state.finished;
    },
    stop() {
      state.stopped = true;
    },
  };
}
