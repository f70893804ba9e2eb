/**
 * Values of placeholders in header rules. They come from the orchestrator at the moment of use, are kept in memory for a
 * moment, and are never logged or stored. An execution has values from `begin` to `end`, and only for the placeholders of
 * its policy. A value that arrives after its execution has ended or its policy has changed is dropped.
 */

import { defined } from "../../shared/defined.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import { placeholdersOf } from "../../shared/policy/placeholders.ts";
import { bucket } from "../../shared/program/bucket.ts";
import type { AskedValue, ResolvedValue } from "../egress/channel/messages.ts";
import { type Fetched, fetchValue, type Orchestrator, type Result } from "./fetch-value.ts";

/** The node keeps a secret for this long after its request. The node's clock measures the time, because the orchestrator's may differ. */
const KEEP_SECRET_MS = 1_000;
/** A token that expires this soon is not used any more. */
const TOKEN_RESERVE_MS = 30_000;
const TOKENS = "e2b.identity.tokens.";
/** How long the lack of a value is kept, so that a program that repeats its request does not flood the orchestrator. */
const KEEP_PROBLEM_MS = 500;
/** Requests to the orchestrator for one execution: a burst, and the rate at which the burst refills. */
const ASKED_AT_ONCE = 64;
const ASKED_A_SECOND = 64;
/** Most requests to the orchestrator that are under way, for all executions. */
const MOST_ASKED = 512;
const SWEEP_EVERY_MS = 500;

type PlaceholderResults = Readonly<Record<Result, number>>;

export interface Values {
  /** Values for the placeholders of this policy; earlier values are dropped. */
  begin(executionId: string, policy: EgressPolicy): void;
  /** Drops the execution's values: it has ended, or is being paused. */
  end(executionId: string): void;
  /** Never rejects. For each placeholder of an execution one request to the orchestrator is under way at a time. */
  resolve(asked: AskedValue): Promise<ResolvedValue>;
  /** The egress process has used a value again that `resolve` let it keep. */
  used(asked: AskedValue, count: number): void;
  /** How requests for values ended, since the start of the agent. */
  results(): PlaceholderResults;
  stop(): void;
}

interface ValuesDeps {
  readonly orchestrator: Orchestrator;
  /** Called when values are used. */
  readonly onUse: (asked: AskedValue, count: number) => void;
  /** Called when an execution that could have values has none any more. */
  readonly onEnd: () => void;
  readonly now: () => number;
  /** For tests: as `FetchValueDeps.pausesMs`. */
  readonly pausesMs?: readonly number[];
}

interface Answered extends Pick<Fetched, "answer" | "result"> {
  /** Until when the answer is kept, in unix milliseconds. */
  readonly keptUntil: number;
}

interface Entry {
  readonly answered: Promise<Answered>;
  /** As `Answered.keptUntil`; infinite while the request is under way. */
  keptUntil: number;
  /** For how long it was to be kept when it came: more is left only where the clock was set back, and then it is asked for again. */
  keptForMs: number;
}

interface Execution {
  readonly placeholders: ReadonlySet<string>;
  readonly entries: Map<string, Entry>;
  readonly rate: ReturnType<typeof bucket>;
}

export function createValues({ orchestrator, onUse, onEnd, now, pausesMs }: ValuesDeps): Values {
  const executions = new Map<string, Execution>();
  const results: Record<Result, number> = { used: 0, missing: 0, refused: 0, unavailable: 0 };
  const stopping = new AbortController();
  let underWay = 0;

  const sweep = setInterval(() => {
    const at = now();
    for (const { entries } of executions.values())
      for (const [placeholder, { keptUntil }] of entries) if (keptUntil <= at) entries.delete(placeholder);
  }, SWEEP_EVERY_MS).unref();

  const fetch = (executionId: string, own: Execution, placeholder: string): Entry => {
    underWay += 1;
    const asked = { executionId, asks: placeholder };
    const { signal } = stopping;
    const deps = { orchestrator, now, signal, ...defined({ pausesMs }) };
    const answered = fetchValue(asked, deps).then((fetched): Answered => {
      underWay -= 1;
      entry.keptUntil = keptUntil(placeholder, fetched, now());
      entry.keptForMs = entry.keptUntil - now();
      if (executions.get(executionId) === own) return { ...fetched, keptUntil: entry.keptUntil };
      return without("refused", "the sandbox or its rules have changed in the meantime");
    });
    const entry: Entry = { answered, keptUntil: Number.POSITIVE_INFINITY, keptForMs: Number.POSITIVE_INFINITY };
    own.entries.set(placeholder, entry);
    return entry;
  };

  const find = async ({ executionId, placeholder }: AskedValue): Promise<Answered> => {
    const own = executions.get(executionId);
    if (own?.placeholders.has(placeholder) !== true) return without("refused", "no rule of the sandbox has it");
    const entry = own.entries.get(placeholder);
    if (entry !== undefined && isKept(entry, now())) return entry.answered;
    if (underWay >= MOST_ASKED || !own.rate.take())
      return without("unavailable", "too many values were asked for at once; repeat the request later");
    return fetch(executionId, own, placeholder).answered;
  };

  return {
    begin(executionId, { rules }) {
      const templates = rules.flatMap(({ headers }) => Object.values(headers));
      const asked = templates.flatMap((template) => placeholdersOf(template)).map(({ asks }) => asks);
      const placeholders = new Set(asked.filter((asks) => asks !== undefined));
      if (placeholders.size === 0) executions.delete(executionId);
      else
        executions.set(executionId, {
          placeholders,
          entries: new Map(),
          rate: bucket(ASKED_AT_ONCE, ASKED_A_SECOND, now),
        });
    },
    end(executionId) {
      if (executions.delete(executionId)) onEnd();
    },
    async resolve(asked) {
      const { answer, result, keptUntil } = await find(asked);
      results[result] += 1;
      if (result !== "used") return { answer, keepMs: 0 };
      onUse(asked, 1);
      return { answer, keepMs: Math.max(0, Math.min(keptUntil - now(), KEEP_SECRET_MS)) };
    },
    used(asked, count) {
      results.used += count;
      onUse(asked, count);
    },
    results: () => ({ ...results }),
    stop() {
      clearInterval(sweep);
      stopping.abort();
      executions.clear();
    },
  };
}

function isKept({ keptUntil: until, keptForMs }: Entry, at: number): boolean {
  const leftMs = until - at;
  return leftMs > 0 && leftMs <= keptForMs;
}

function keptUntil(placeholder: string, { result, askedAt, usableUntil }: Fetched, now: number): number {
  if (result === "unavailable") return now + KEEP_PROBLEM_MS;
  if (result !== "used") return askedAt + KEEP_PROBLEM_MS;
  if (placeholder.startsWith(TOKENS)) return usableUntil - TOKEN_RESERVE_MS;
  return askedAt + KEEP_SECRET_MS;
}

function without(result: Result, problem: string): Answered {
  return { answer: { problem }, result, keptUntil: 0 };
}
