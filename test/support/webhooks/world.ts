/** The store and the delivery of webhooks under a clock that a test moves, without the rest of the orchestrator. */

import type { LookupAddress } from "node:dns";
import { onTestFinished } from "vitest";
import { createStore } from "../../../orchestrator/store/store.ts";
import { targetAddresses } from "../../../orchestrator/webhooks/addresses.ts";
import { type Delivering, startDelivering } from "../../../orchestrator/webhooks/delivering.ts";
import { createSend, type Resolve } from "../../../orchestrator/webhooks/send.ts";
import type { EventType } from "../../../shared/api/events.ts";
import { createLog } from "../../../shared/program/log.ts";
import { openTestDatabase } from "../store/databases.ts";
import { sandboxRecord } from "../store/sandbox-records.ts";
import { testSeal } from "../store/test-seal.ts";

export const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
export const PROJECT = "p";
export const LIFECYCLE = ["created", "updated", "paused", "resumed", "killed"].map(
  (type) => `sandbox.lifecycle.${type}`,
);

const log = createLog({ component: "test", level: "silent" });

export interface WorldOptions {
  readonly timeoutMs?: number;
  readonly disableMs?: number;
  /** Ranges that may be targets. */
  readonly allowed?: string;
  /** Addresses of names. */
  readonly names?: Readonly<Record<string, () => readonly string[]>>;
}

export async function webhookWorld({
  timeoutMs = 30_000,
  disableMs = 0,
  allowed = "127.0.0.0/8",
  names = {},
}: WorldOptions = {}) {
  // Receivers compare the time of a signature with their own clock.
  const clock = { at: Date.now() };
  const now = () => clock.at;
  const opened = await openTestDatabase();
  const store = createStore(opened.database, now, testSeal);
  const addresses = targetAddresses(allowed);
  const resolve: Resolve = (name, done) => {
    const found = names[name]?.().map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 }));
    if (found === undefined) done(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }), []);
    else done(null, found);
  };
  const results: string[] = [];

  function process({ stopMs = 2_000 } = {}): Delivering {
    const send = createSend({ addresses, now, timeoutMs, resolve });
    const observe = (result: string) => void results.push(result);
    const delivering = startDelivering({
      store,
      send,
      now,
      random: () => 0.5,
      log,
      timeoutMs,
      disableMs,
      stopMs,
      observe,
    });
    onTestFinished(() => delivering.stop());
    return delivering;
  }

  onTestFinished(() => opened.close());
  return {
    clock,
    store,
    results,
    /** Another process on the same database. */
    process,
    async webhook(url: string, events: readonly string[] = LIFECYCLE) {
      const added = await store.webhooks.add(
        { projectId: PROJECT, name: "n", url, events, enabled: true, secret: SECRET },
        100,
      );
      if (added === undefined) throw new Error("the project has too many webhooks");
      return added;
    },
    async event(sandboxId: string, type: EventType = "updated", data: Readonly<Record<string, unknown>> = {}) {
      await store.addEvent(sandboxRecord({ id: sandboxId, projectId: PROJECT }), { type, data });
    },
    events: () => store.events.read(PROJECT, {}, { limit: 100_000, ascending: true }),
    deliveries: (webhookId: string) => store.deliveries.log(webhookId, { limit: 100 }),
  };
}
