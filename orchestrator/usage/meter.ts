/** Adds up what the executions use, from the nodes' reports, by project. */

import type { LiveExecution } from "../../shared/agent-api/routes.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Counters, Used } from "../store/usage/sample.ts";

export interface Pending {
  /** By project: what was counted since the last flush, and what is in use now. */
  readonly used: ReadonlyMap<string, Used>;
  readonly counters: ReadonlyMap<string, Counters>;
  /** Executions that no report has mentioned for a while. */
  readonly silent: readonly string[];
}

export interface Meter {
  heard(executions: readonly LiveExecution[], records: readonly Owner[]): void;
  /**
   * Passes on what is pending; `store` resolves with the silent executions that have ended. When it fails, everything is
   * pending again.
   */
  flush(store: (pending: Pending) => Promise<readonly string[]>): Promise<void>;
}

type Owner = Pick<SandboxRecord, "id" | "executionId" | "projectId">;

/** An execution that no report has mentioned for so long may have ended; until half of it, it counts as in use. */
const SILENT_MS = 60_000;

interface Seen {
  counted: Counters;
  heardAt: number;
  projectId: string | undefined;
  memoryBytes: number;
  diskBytes: number;
}

/** @param known the counters of executions as they were flushed last, also by an earlier process */
export function createMeter(known: ReadonlyMap<string, Counters>, now: () => number): Meter {
  const executions = new Map<string, Seen>();
  for (const [id, counted] of known) {
    executions.set(id, { counted, heardAt: now(), projectId: undefined, memoryBytes: 0, diskBytes: 0 });
  }
  let sums = new Map<string, Counters>();
  let changed = new Map<string, Counters>();

  function take(): Pending {
    const used = new Map<string, Used>([...sums].map(([id, sum]) => [id, { ...sum, memoryBytes: 0, diskBytes: 0 }]));
    const silent: string[] = [];
    for (const [id, { heardAt, projectId, memoryBytes, diskBytes }] of executions) {
      const silentFor = now() - heardAt;
      if (silentFor > SILENT_MS) silent.push(id);
      if (projectId === undefined || silentFor > SILENT_MS / 2) continue;
      const before = used.get(projectId) ?? { ...NONE, memoryBytes: 0, diskBytes: 0 };
      used.set(projectId, {
        ...before,
        memoryBytes: before.memoryBytes + memoryBytes,
        diskBytes: before.diskBytes + diskBytes,
      });
    }
    return { used, counters: changed, silent };
  }

  return {
    heard(reported, records) {
      const owners = new Map(records.map(({ id, executionId, projectId }) => [`${id} ${executionId}`, projectId]));
      for (const { executionId, sandboxId, use } of reported) {
        const projectId = owners.get(`${sandboxId} ${executionId}`);
        if (projectId === undefined || use === undefined) continue;
        const { memoryBytes, diskBytes, ...counted } = use;
        const before = executions.get(executionId)?.counted ?? NONE;
        sums.set(projectId, plus(sums.get(projectId) ?? NONE, since(before, counted)));
        changed.set(executionId, counted);
        executions.set(executionId, { counted, heardAt: now(), projectId, memoryBytes, diskBytes });
      }
    },

    async flush(store) {
      const [oldSums, oldChanged] = [sums, changed];
      const pending = take();
      sums = new Map();
      changed = new Map();
      let ended: readonly string[];
      try {
        ended = await store(pending);
      } catch (error) {
        for (const [id, sum] of oldSums) sums.set(id, plus(sums.get(id) ?? NONE, sum));
        changed = new Map([...oldChanged, ...changed]);
        throw error;
      }
      // A report that came meanwhile shows that an execution still runs: its counters go on from where they are.
      for (const id of ended) if (!changed.has(id)) executions.delete(id);
    },
  };
}

const NONE: Counters = { cpuMs: 0, sentBytes: 0, receivedBytes: 0 };

/** A counter that is lower than before has begun again at 0, with its agent. */
function since(before: Counters, after: Counters): Counters {
  const difference = (name: keyof Counters) => (after[name] >= before[name] ? after[name] - before[name] : after[name]);
  return {
    cpuMs: difference("cpuMs"),
    sentBytes: difference("sentBytes"),
    receivedBytes: difference("receivedBytes"),
  };
}

function plus(one: Counters, other: Counters): Counters {
  return {
    cpuMs: one.cpuMs + other.cpuMs,
    sentBytes: one.sentBytes + other.sentBytes,
    receivedBytes: one.receivedBytes + other.receivedBytes,
  };
}
