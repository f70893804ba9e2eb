/** Log lines of sandboxes: read from envd on request, before the end, and periodically from busy sandboxes. */

import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { LOG_LEVELS, type LogEntry } from "../../shared/agent-api/sandbox-log.ts";
import { within } from "../../shared/program/deadline.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { Envd } from "../containers/envd.ts";
import type { LogQuery, LogStore, StoredEntry } from "../store/logs.ts";
import type { Sandbox } from "./sandbox.ts";

const EVERY_MS = 30_000;
const ASKED_LIMIT_MS = 1_000;
const LAST_LIMIT_MS = 150;
const MAX_PAGES = 8;
const MAX_MESSAGE_CHARACTERS = 4_096;
const MAX_FIELDS = 32;
const MAX_FIELD_CHARACTERS = 1_024;
/** Fields that are removed from a line: the agent knows its source, and the line must not claim another. */
const IDENTITY_FIELDS = /^(sandbox|instance|team|env|template|execution|project|trace)_?id$/i;

const Answer = Type.Object({ entries: Type.Array(Type.Unknown(), { maxItems: 1_000 }) });
const isAnswer = Compile(Answer);
const Entry = Type.Object({
  seq: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  timestamp: Type.String({ maxLength: 64 }),
  level: Type.Enum([...LOG_LEVELS]),
  message: Type.String(),
  logger: Type.Optional(Type.String()),
  fields: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
const isEntry = Compile(Entry);

export interface SandboxLogsDeps {
  readonly envd: Pick<Envd, "logs">;
  readonly store: LogStore;
  readonly running: () => readonly Sandbox[];
  readonly now: () => number;
  readonly log: Log;
}

export interface SandboxLogs {
  /** `sandbox` is set while it runs: its newest lines are read first. */
  read(executionId: string, sandbox: Sandbox | undefined, query: LogQuery): Promise<LogEntry[]>;
  /** Called just before the kill. Quick, and never throws. */
  last(sandbox: Sandbox): Promise<void>;
  /** Adds the last line of a sandbox whose first process the kernel killed: envd could not. */
  outOfMemory(sandbox: Sandbox): void;
  stop(): Promise<void>;
}

export function startSandboxLogs({ envd, store, running, now, log }: SandboxLogsDeps): SandboxLogs {
  const pulls = new Map<string, Promise<void>>();
  const pulledAt = new Map<string, number>();

  const pullOnce = async ({ executionId, container, startedAt }: Sandbox, signal: AbortSignal) => {
    const at = { address: container.slot.address, controlToken: container.controlToken };
    for (let page = 0; page < MAX_PAGES; page++) {
      const after = store.lastSeq(executionId);
      const answer = await envd.logs(at, after, signal);
      if (!isAnswer.Check(answer)) return;
      const entries = answer.entries.flatMap((entry) => toEntry(entry, { after, from: startedAt, to: now() }));
      store.add(executionId, entries);
      if (entries.length < 1_000) return;
    }
  };

  const pull = (sandbox: Sandbox, limitMs: number): Promise<void> => {
    const { executionId } = sandbox;
    const under = pulls.get(executionId);
    if (under !== undefined) return under;
    const started = within(limitMs, (limit) => pullOnce(sandbox, limit))
      .catch((error: unknown) => log.debug({ err: error, executionId }, "could not read the logs of a sandbox"))
      .finally(() => pulls.delete(executionId));
    pulls.set(executionId, started);
    return started;
  };

  const rounds = loop({ name: "logs", everyMs: EVERY_MS, log }, async () => {
    const alive = running();
    for (const sandbox of alive) {
      const used = processorTime(sandbox);
      if (used === undefined || used === pulledAt.get(sandbox.executionId)) continue;
      await pull(sandbox, ASKED_LIMIT_MS);
      // Measured after the read, because the read itself is not activity.
      pulledAt.set(sandbox.executionId, processorTime(sandbox) ?? used);
    }
    const ids = new Set(alive.map(({ executionId }) => executionId));
    for (const id of pulledAt.keys()) if (!ids.has(id)) pulledAt.delete(id);
  });

  return {
    async read(executionId, sandbox, query) {
      if (sandbox !== undefined) await pull(sandbox, ASKED_LIMIT_MS);
      return store.read(executionId, query);
    },
    last: (sandbox) => pull(sandbox, LAST_LIMIT_MS),
    outOfMemory({ executionId, container }) {
      const message = `the sandbox ended, out of memory: limit ${container.resources.memoryMB} MiB`;
      const seq = store.lastSeq(executionId) + 1;
      store.add(executionId, [{ seq, at: now(), level: "error", message, fields: { logger: "node" } }]);
    },
    stop: () => rounds.stop(),
  };
}

function processorTime({ container }: Sandbox): number | undefined {
  try {
    return container.cgroup.usage().cpuUs;
  } catch {
    return undefined;
  }
}

/** One entry, cut to size and with a plausible time; undefined when it is not an entry. */
function toEntry(value: unknown, bounds: { after: number; from: number; to: number }): StoredEntry[] {
  if (!isEntry.Check(value) || value.seq <= bounds.after) return [];
  const entry: Static<typeof Entry> = value;
  const at = Date.parse(entry.timestamp);
  const possible = Number.isFinite(at) && at >= bounds.from - 60_000 && at <= bounds.to + 60_000;
  const logger = entry.logger === undefined ? {} : { logger: cut(entry.logger, 64) };
  return [
    {
      seq: entry.seq,
      at: possible ? at : bounds.to,
      level: entry.level,
      message: cut(entry.message, MAX_MESSAGE_CHARACTERS),
      fields: { ...toFields(entry.fields ?? {}), ...logger },
    },
  ];
}

function toFields(fields: Readonly<Record<string, unknown>>): Record<string, string> {
  const kept = Object.entries(fields)
    .filter(([name]) => !IDENTITY_FIELDS.test(name))
    .slice(0, MAX_FIELDS)
    .map(([name, value]) => [cut(name, 64), cut(toText(value), MAX_FIELD_CHARACTERS)] as const);
  return Object.fromEntries(kept);
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : text.slice(0, most);
}
