/**
 * The node's lease. Where an orchestrator may count this node as lost while it runs, each answer to a report says for how
 * long the node's sandboxes may run without another answer. After that they are frozen, before anything of theirs can run
 * elsewhere. The next answer names those that are still current: they are thawed, and the others end as it says.
 */

import type { HeartbeatReply } from "../../shared/agent-api/routes.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { type Loop, loop } from "../../shared/program/loop.ts";
import type { Gate } from "../network/gate.ts";
import type { LiveSet } from "../sandboxes/live-set.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import type { LeaseStore } from "../store/lease.ts";
import { afterAnswer, hasLapsed, type LeaseState, stateAt } from "./rules.ts";

const EVERY_MS = 1_000;
/** Renewals that are written in the time of a lease: a report may follow another one at once. */
const WRITES = 6;

export interface LeaseDeps {
  /** Changes with each start of the kernel, which ends all sandboxes. */
  readonly bootId: string;
  /** Milliseconds since the start of the kernel: a jump of the clock freezes nothing, and the next agent process goes on with it. */
  readonly sinceBoot: () => number;
  readonly store: LeaseStore;
  readonly live: Pick<LiveSet, "running" | "get" | "entries">;
  /** The execution is frozen because the node's disk is short, too. */
  readonly isHeld: (executionId: string) => boolean;
  readonly gate: Pick<Gate, "hold" | "open">;
  /** False: the operator wants sandboxes to run on without an orchestrator. */
  readonly freezes: boolean;
  /** Something that a report would show has changed, or a report is wanted. */
  readonly onChange: () => void;
  readonly log: Log;
}

/** A report that was answered. */
export interface SentReport {
  /** Milliseconds since the start of the kernel. */
  readonly at: number;
  readonly executions: readonly string[];
}

export interface Lease {
  /** Freezes what must stand still now. The agent calls it before it lets anything in, and then each second. */
  check(): Promise<void>;
  start(): void;
  answered(sent: SentReport, reply: HeartbeatReply): Promise<void>;
  /** The execution is frozen because the lease has lapsed. */
  isFrozen(executionId: string): boolean;
  /** Why nothing can begin here now. */
  refusal(): AppError | undefined;
  /** How many sandboxes stand still, and why; undefined: none. */
  readonly problem: string | undefined;
  /**
   * Runs the work that takes a snapshot; until its end the lease neither freezes nor thaws the sandbox. For a pause with
   * memory a frozen sandbox runs without a network until the pause freezes it, because envd takes part.
   * @throws {AppError} unavailable for a copy of a frozen sandbox: the copy would run, and the sandbox may no longer be current
   */
  snapshot<T>(sandbox: Sandbox, of: TakenPart, work: () => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

interface TakenPart {
  readonly kind: "pause" | "checkpoint";
  readonly memory: boolean;
}

export function createLease(deps: LeaseDeps): Lease {
  const { bootId, sinceBoot, store, live, isHeld, gate, freezes, onChange, log } = deps;
  const kept = store.get();
  const before: LeaseState =
    kept?.bootId === bootId
      ? { grant: kept.grant, frozen: new Set(kept.frozen) }
      : { grant: undefined, frozen: new Set() };
  let state = before;
  let written = kept?.grant;
  const storing = new Set<string>();
  let turn: Promise<unknown> = Promise.resolve();
  let looking: Loop | undefined;

  /** One after another: a freeze that is under way would freeze again what an answer thaws meanwhile. */
  const inTurn = <T>(work: () => Promise<T> | T): Promise<T> => {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  };

  const write = () => {
    const { grant, frozen } = state;
    try {
      store.set({ bootId, grant, frozen: [...frozen] });
      written = grant;
    } catch (error) {
      // The row keeps an earlier time, so the next agent process freezes the sandboxes too early, and never too late.
      log.warn({ err: error }, "could not record the node's lease");
    }
  };

  const isNews = (next: LeaseState): boolean => {
    const { grant } = next;
    if (grant === undefined || written === undefined) return grant !== written;
    return grant.sentAt - written.sentAt >= grant.forMs / WRITES || grant.forMs !== written.forMs;
  };

  const freeze = async ({ executionId, container: { cgroup } }: Sandbox) => {
    try {
      await cgroup.freeze();
    } catch (error) {
      if (cgroup.alive()) log.error({ err: error, executionId }, "could not freeze a sandbox, trying again");
    }
  };

  const thaw = (executionId: string) => {
    // A snapshot under way thaws the sandbox itself when it needs to.
    if (storing.has(executionId) || isHeld(executionId)) return;
    try {
      live.get(executionId)?.container.cgroup.thaw();
    } catch (error) {
      log.warn({ err: error, executionId }, "could not thaw a sandbox: its container may have ended");
    }
  };

  const look = async () => {
    const next = stateAt(state, [...live.entries.keys()], sinceBoot());
    const added = [...next.frozen].filter((id) => !state.frozen.has(id));
    const changed = added.length > 0 || next.frozen.size !== state.frozen.size;
    state = next;
    if (added.length > 0)
      log.error(
        { executions: added, leaseMs: state.grant?.forMs },
        "no orchestrator has answered a report for the time of the node's lease: its sandboxes are frozen until one does",
      );
    // Before the freeze: the next agent process must know why it finds them frozen.
    if (changed) write();
    await Promise.all(
      live
        .running()
        .filter(({ executionId, container }) => {
          return state.frozen.has(executionId) && !storing.has(executionId) && !container.cgroup.frozen();
        })
        .map(freeze),
    );
  };

  const apply = (sent: SentReport, { stop, hold = [], lease }: HeartbeatReply) => {
    const notCurrent = [...stop, ...hold, ...(lease?.withoutRecord ?? [])];
    const answer = { sentAt: sent.at, reported: sent.executions, notCurrent, forMs: lease?.forMs };
    const next = afterAnswer(state, answer, sinceBoot());
    const released = [...state.frozen].filter((id) => !next.frozen.has(id));
    const news = released.length > 0 || isNews(next);
    state = next;
    for (const id of released) thaw(id);
    // After the thaw: an agent that ends in between finds a lapsed lease, and freezes until the next answer.
    if (news) write();
    if (released.length === 0) return;
    log.info({ executions: released }, "an orchestrator answers again: the sandboxes that are still current go on");
    onChange();
  };

  const refusal = () => {
    if (!hasLapsed(state.grant, sinceBoot())) return undefined;
    onChange();
    return new AppError(
      "unavailable",
      "the node's lease has lapsed: it waits for an orchestrator's answer to its report",
    );
  };

  /** Runs for the first part of a pause, in which envd takes part. */
  const wake = async ({ executionId, container }: Sandbox) => {
    await gate.hold(container.slot);
    if (live.get(executionId) !== undefined) container.cgroup.thaw();
  };

  /** After a snapshot that failed. */
  const settle = async (sandbox: Sandbox) => {
    const current = live.get(sandbox.executionId);
    if (current === undefined) return;
    if (state.frozen.has(sandbox.executionId)) await freeze(current);
    const { executionId, sandboxId, container, egress } = current;
    await gate.open(container.slot, { executionId, sandboxId }, egress);
  };

  return {
    check: () => (freezes ? inTurn(look) : Promise.resolve()),
    start() {
      if (freezes) looking ??= loop({ name: "lease", everyMs: EVERY_MS, log }, () => inTurn(look));
      else if (kept !== undefined) {
        // An earlier agent process froze them by another setting.
        state = { grant: undefined, frozen: new Set() };
        for (const id of before.frozen) thaw(id);
        write();
      }
    },
    answered: (sent, reply) => (freezes ? inTurn(() => apply(sent, reply)) : Promise.resolve()),
    isFrozen: (executionId) => state.frozen.has(executionId),
    refusal: () => (freezes ? refusal() : undefined),
    get problem() {
      const { size } = state.frozen;
      if (size === 0) return undefined;
      return `${size} ${size === 1 ? "sandbox stands" : "sandboxes stand"} still: no orchestrator has answered in time, or none has said yet that they are current`;
    },
    async snapshot(sandbox, { kind, memory }, work) {
      const { executionId } = sandbox;
      const woken = await inTurn(async () => {
        const frozen = state.frozen.has(executionId);
        if (frozen && kind === "checkpoint") throw standsStill();
        const wakes = frozen && memory;
        storing.add(executionId);
        try {
          if (wakes) await wake(sandbox);
        } catch (error) {
          storing.delete(executionId);
          throw error;
        }
        return wakes;
      });
      try {
        return await work();
      } catch (error) {
        if (woken)
          await inTurn(() => settle(sandbox)).catch((again: unknown) =>
            log.error({ err: again, executionId }, "could not open the network of a sandbox after a failed pause"),
          );
        throw error;
      } finally {
        storing.delete(executionId);
        looking?.wake();
      }
    },
    async stop() {
      await looking?.stop();
      await turn;
    },
  };
}

function standsStill(): AppError {
  return new AppError(
    "unavailable",
    "the sandbox is held: its node has no answer of an orchestrator that it is still current; try again",
  );
}
