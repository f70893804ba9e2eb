/**
 * Keeps a second orchestrator away from the database: a session of its own holds a lock that no other one gets. Needed until
 * everything in docs/decisions.md ("Several orchestrators") is done.
 */

import type { Client } from "pg";
import { AppError } from "../../../shared/http/errors.ts";
import { withDeadline } from "../../../shared/program/deadline.ts";

/** How long a restarted orchestrator waits until the server has ended the session of its previous process. */
const LOCK_WAIT_MS = 30_000;
const LOCK_RETRY_MS = 250;
/** Key of the advisory lock: any number, as long as every orchestrator uses the same. */
const ORCHESTRATOR_LOCK = 7_382_001;
const END_MS = 1_000;

export interface Alone {
  /** Resolves when this process holds the lock; at once while it does. @throws {AppError} internal, when another one has it */
  held(): Promise<void>;
  end(): Promise<void>;
}

/** @param lost called when the session has ended: another process may have the lock from now on */
export function holdAlone(open: () => Promise<Client>, lost: () => void): Alone {
  const state = { holding: undefined as Promise<Client> | undefined, ended: false };

  async function take(): Promise<Client> {
    const client = await open();
    const gone = () => {
      if (state.ended || state.holding !== holding) return;
      state.holding = undefined;
      lost();
    };
    const holding = state.holding;
    client.once("end", gone);
    try {
      await lock(client);
    } catch (error) {
      void client.end().catch(() => undefined);
      throw error;
    }
    return client;
  }

  return {
    async held() {
      if (state.holding === undefined) {
        const holding = take();
        state.holding = holding;
        holding.catch(() => {
          if (state.holding === holding) state.holding = undefined;
        });
      }
      await state.holding;
    },
    async end() {
      state.ended = true;
      const client = await state.holding?.catch(() => undefined);
      // A server that does not answer does not confirm the end either.
      if (client !== undefined) await withDeadline(client.end(), END_MS, () => undefined);
    },
  };
}

async function lock(client: Client): Promise<void> {
  const before = performance.now();
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>("select pg_try_advisory_lock($1) as held", [
      ORCHESTRATOR_LOCK,
    ]);
    if (rows[0]?.held === true) return;
    if (performance.now() - before > LOCK_WAIT_MS) {
      throw new AppError("internal", "another orchestrator uses this database: stop it, or use another database");
    }
    await new Promise((resolve) => setTimeout(resolve, LOCK_RETRY_MS));
  }
}
