/**
 * Sends deliveries that are due. Each webhook has workers of its own, as many as there is work for, up to a limit, so that a
 * slow receiver holds up no other. A worker claims one delivery, makes one attempt, and records its end. A delivery whose
 * process died is due again when its claim ends: a receiver gets each event at least once.
 */

import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { Store } from "../store/store.ts";
import type { Claimed, DueWebhook, Outcome } from "../store/webhooks/deliveries.ts";
import { deliveryRequest } from "./delivery-request.ts";
import { redacted } from "./redact.ts";
import { nextAttempt } from "./schedule.ts";
import type { Send, Sent } from "./send.ts";

export interface DeliveringDeps {
  readonly store: Store;
  readonly send: Send;
  readonly now: () => number;
  /** A random number in [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** Time limit of an attempt. */
  readonly timeoutMs: number;
  /** How long a receiver may fail before its webhook is disabled; 0: for ever. */
  readonly disableMs: number;
  /** How long a stop waits for attempts under way; absent: 2 s. */
  readonly stopMs?: number;
  /** Counts attempts for the metrics. */
  observe(result: "delivered" | "retry" | "failed"): void;
}

export interface Delivering {
  /** There may be deliveries that are due, of this project or of any. */
  wake(projectId?: string): void;
  /** Starts workers for what is due, and resolves when every worker has ended. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/** Time between two looks for deliveries that became due: retries, and claims whose process died. */
const EVERY_MS = 1_000;
/** Attempts at a time: in all, of one project, and of one webhook. */
const AT_ONCE = 256;
const PER_PROJECT = 64;
const PER_WEBHOOK = 8;
/** After so many failures in a row a webhook has one attempt at a time. */
const MANY_FAILURES = 5;
/** Beyond the limit of an attempt, for a busy process. */
const CLAIM_MARGIN_MS = 1_000;
const STOP_MS = 2_000;

export function startDelivering(deps: DeliveringDeps): Delivering {
  const { store, now, log } = deps;
  const attempts = createSemaphore(AT_ONCE, PER_PROJECT);
  const workers = new Map<string, Set<Promise<void>>>();
  const stopping = new AbortController();
  const cutting = new AbortController();
  /** Deliveries of which an attempt is under way, by webhook. */
  const underWay = new Map<string, Set<string>>();
  const asked = new Set<string>();
  let lookedAtAll = Number.NEGATIVE_INFINITY;

  async function startWorkers(projectIds?: readonly string[]): Promise<void> {
    for (const due of await store.deliveries.due(projectIds)) {
      if (stopping.signal.aborted) return;
      startWorker(due);
    }
  }

  /** An event has its own project looked at: the webhooks of all projects, at each event, would be too many. */
  async function round(): Promise<void> {
    const projectIds = [...asked];
    asked.clear();
    const at = performance.now();
    if (projectIds.length > 0 && at - lookedAtAll < EVERY_MS) return startWorkers(projectIds);
    lookedAtAll = at;
    return startWorkers();
  }

  function startWorker(due: DueWebhook): void {
    const running = workers.get(due.id) ?? new Set<Promise<void>>();
    if (running.size >= (due.failures >= MANY_FAILURES ? 1 : PER_WEBHOOK)) return;
    workers.set(due.id, running);
    const work = worker(due).catch((error: unknown) => {
      if (!stopping.signal.aborted) log.warn({ err: error, webhookId: due.id }, "could not deliver for a webhook");
    });
    running.add(work);
    void work.then(() => {
      running.delete(work);
      if (running.size === 0) workers.delete(due.id);
    });
  }

  /** Works until nothing is due for its webhook; starts another worker for what is left. */
  async function worker(due: DueWebhook): Promise<void> {
    let { failures } = due;
    while (!stopping.signal.aborted) {
      const release = await attempts.take(stopping.signal, due.projectId);
      try {
        const claimed = await store.deliveries.claim(due.id, deps.timeoutMs + CLAIM_MARGIN_MS, [
          ...(underWay.get(due.id) ?? []),
        ]);
        if (claimed === undefined) return;
        const done = begin(claimed);
        try {
          startWorker({ ...due, failures });
          const failed = await deliver(claimed);
          failures = failed ? failures + 1 : 0;
        } finally {
          done();
        }
      } finally {
        release();
      }
      // The other workers are enough to see whether the receiver works again.
      if (failures >= MANY_FAILURES && (workers.get(due.id)?.size ?? 0) > 1) return;
    }
  }

  /** Returns the end of the attempt. */
  function begin({ id, webhookId }: Claimed): () => void {
    const ids = underWay.get(webhookId) ?? new Set<string>();
    underWay.set(webhookId, ids.add(id));
    return () => {
      ids.delete(id);
      if (ids.size === 0 && underWay.get(webhookId) === ids) underWay.delete(webhookId);
    };
  }

  /** Makes one attempt and records it. True: it failed. */
  async function deliver(claimed: Claimed): Promise<boolean> {
    const at = now();
    const request = deliveryRequest(claimed, at);
    let sent: Sent;
    try {
      sent =
        request === undefined
          ? { errorClass: "event_gone", error: "the event is older than the events that are kept", durationMs: 0 }
          : await deps.send(request, cutting.signal);
    } catch (error) {
      await store.deliveries.returnClaim(claimed);
      throw error;
    }
    const outcome = outcomeOf(claimed, sent);
    const { httpStatus, errorClass, error, durationMs } = sent;
    const response = sent.response === undefined ? undefined : redacted(sent.response, claimed.secret);
    const facts = { at, durationMs, httpStatus, errorClass, error, response };
    const health = await store.deliveries.finish(claimed, outcome, facts);
    deps.observe(outcome.is);
    if (health === undefined) return outcome.is !== "delivered";
    if (outcome.is === "delivered") {
      if (health.failures >= MANY_FAILURES) {
        await store.deliveries.retryNow(claimed.webhookId);
        wake();
      }
      return false;
    }
    const ids = { webhookId: claimed.webhookId, deliveryId: claimed.id, eventId: claimed.eventId };
    log.info({ ...ids, errorClass, httpStatus, attempts: claimed.attempts, outcome: outcome.is }, "a delivery failed");
    await disableIfHopeless(claimed, errorClass, health.failingSince);
    return true;
  }

  function outcomeOf(claimed: Claimed, { errorClass, retryAfterMs }: Sent): Outcome {
    if (errorClass === undefined) return { is: "delivered" };
    // A person who asked for this delivery looks at its result, and can ask again.
    if (claimed.kind !== "event" || errorClass === "event_gone") return { is: "failed" };
    const { attempts: made, createdAt } = claimed;
    const at = nextAttempt({ attempts: made, createdAt, now: now(), random: deps.random(), retryAfterMs });
    return at === undefined ? { is: "failed" } : { is: "retry", at };
  }

  async function disableIfHopeless(
    { webhookId }: Claimed,
    errorClass: Sent["errorClass"],
    failingSince: number | undefined,
  ): Promise<void> {
    const tooLong = deps.disableMs > 0 && failingSince !== undefined && now() - failingSince >= deps.disableMs;
    const reason = errorClass === "gone" ? "gone" : tooLong ? "failing" : undefined;
    if (reason === undefined || !(await store.webhooks.disable(webhookId, reason))) return;
    log.warn({ webhookId, reason, failingSince }, "disabled a webhook");
  }

  const rounds = loop({ name: "webhooks", everyMs: EVERY_MS, log }, round);

  function wake(projectId?: string): void {
    if (projectId === undefined) lookedAtAll = Number.NEGATIVE_INFINITY;
    else asked.add(projectId);
    rounds.wake();
  }

  return {
    wake,
    async settle() {
      await startWorkers();
      while (workers.size > 0) await Promise.all([...workers.values()].flatMap((running) => [...running]));
    },
    async stop() {
      stopping.abort();
      const timer = setTimeout(() => cutting.abort(), deps.stopMs ?? STOP_MS);
      await rounds.stop();
      while (workers.size > 0) await Promise.all([...workers.values()].flatMap((running) => [...running]));
      clearTimeout(timer);
    },
  };
}
