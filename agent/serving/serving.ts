/**
 * The store that this node serves. Remembers which it is and how far it had come; refuses work and ignores replies of any
 * other, and of an older copy, until an operator decides (shared/agent-api/judge-store.ts). Work is taken from the
 * orchestrator that answers the reports, and from those that it names: they use the same database, and no copy of it.
 */

import { judgeStore, refusalText } from "../../shared/agent-api/judge-store.ts";
import type { OfferedStore, StoreMark } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import type { ServedStoreStore } from "../store/served-store.ts";

export interface ServingDeps {
  readonly nodeId: string;
  readonly store: ServedStoreStore;
  /** Number of sandboxes and snapshots that would be lost. */
  readonly kept: () => number;
  /** Asks for a report soon: its reply names the orchestrator's store. */
  readonly ask: () => void;
  readonly log: Log;
  /** For tests: longest wait for a store's name. */
  readonly nameLimitMs?: number;
}

export interface Serving {
  /** What the next report says. */
  readonly served: StoreMark | undefined;
  /** Why the orchestrator that asks last is refused. */
  readonly refusal: string | undefined;
  /** A reply named its store. False: nothing of that reply may be applied. */
  heard(offered: OfferedStore | undefined): boolean;
  /**
   * Resolves when work of this orchestrator may begin. One that the node has not heard of yet waits for the next report.
   * @param name the value of the request header; undefined: an older orchestrator
   * @throws {AppError} unavailable
   */
  admit(name: string | undefined): Promise<void>;
  /** The operator has decided for this store. */
  adopt(mark: StoreMark): void;
}

const NAME_LIMIT_MS = 5_000;

export function createServing({ nodeId, store, kept, ask, log, nameLimitMs = NAME_LIMIT_MS }: ServingDeps): Serving {
  const state = {
    served: store.get(),
    /** The orchestrators that the last answer named, as in the request header. */
    named: new Set<string>(),
    refusal: undefined as string | undefined,
  };
  let waiting: (() => void)[] = [];

  const remember = ({ storeId, opening, mark }: StoreMark) => {
    const { served } = state;
    if (served?.storeId === storeId && served.opening === opening && served.mark >= mark) return;
    state.served = { storeId, opening, mark };
    store.set(state.served);
  };

  const named = (name: string): Promise<void> => {
    if (state.named.has(name)) return Promise.resolve();
    ask();
    return new Promise((resolve) => {
      const limit = setTimeout(resolve, nameLimitMs);
      waiting.push(() => {
        clearTimeout(limit);
        resolve();
      });
    });
  };

  return {
    get served() {
      return state.served;
    },
    get refusal() {
      return state.refusal;
    },
    heard(offered) {
      // An orchestrator of an earlier version names none.
      if (offered === undefined) return state.refusal === undefined;
      const refusal = judgeStore(state.served, offered, kept());
      const text = refusal === undefined ? undefined : refusalText(refusal, { nodeId, kept: kept() });
      const { storeId, opening } = offered;
      if (text === undefined) {
        if (state.refusal !== undefined) log.info({ storeId }, "serving the orchestrator's database again");
        else if (state.served?.storeId !== storeId) log.info({ storeId }, "serving a database for the first time");
        remember({ storeId, opening, mark: offered.mark });
      } else if (state.refusal === undefined) log.error({ storeId, served: state.served?.storeId, refusal }, text);
      state.refusal = text;
      // An older copy of the database is opened under a name that the served one does not know.
      state.named = new Set([opening, ...(offered.beside ?? [])].map((each) => storeName({ storeId, opening: each })));
      for (const wake of waiting) wake();
      waiting = [];
      return text === undefined;
    },
    async admit(name) {
      if (name !== undefined) await named(name);
      if (state.refusal !== undefined) throw new AppError("unavailable", state.refusal);
      if (name !== undefined && !state.named.has(name)) {
        throw new AppError(
          "unavailable",
          `node ${nodeId} reports to an orchestrator that does not know the one that asks: only those at its ` +
            "SVC_ORCHESTRATOR_URL, and others with the same database, may give it work",
        );
      }
    },
    adopt(mark) {
      log.warn({ storeId: mark.storeId, formerly: state.served?.storeId }, "an operator chose the database to serve");
      state.served = mark;
      store.set(mark);
      state.refusal = undefined;
      ask();
    },
  };
}

/** As in the request header. */
function storeName({ storeId, opening }: Pick<StoreMark, "storeId" | "opening">): string {
  return `${storeId}.${opening}`;
}
