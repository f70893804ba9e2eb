/** Keeps what the executions use, from the nodes' reports, until it is told to the database. */

import type { LiveExecution } from "../../shared/agent-api/routes.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Heard } from "../store/usage/counters.ts";
import { type Counters, plus, since } from "../store/usage/sample.ts";

export interface Meter {
  heard(executions: readonly LiveExecution[], records: readonly Owner[]): void;
  /** Passes on what was heard since the last time, by execution. When `store` fails, everything is passed on again. */
  flush(store: (heard: ReadonlyMap<string, Heard>) => Promise<unknown>): Promise<void>;
}

type Owner = Pick<SandboxRecord, "id" | "executionId" | "projectId">;

/** An execution that no report here has mentioned for so long has ended, or its node reports to another orchestrator. */
const SILENT_MS = 60_000;

export function createMeter(now: () => number): Meter {
  const executions = new Map<string, { readonly counted: Counters; readonly at: number }>();
  let waiting = new Map<string, Heard>();

  function note(id: string, newer: Heard): void {
    const older = waiting.get(id);
    waiting.set(id, older === undefined ? newer : joined(older, newer));
  }

  return {
    heard(reported, records) {
      const owners = new Map(records.map(({ id, executionId, projectId }) => [`${id} ${executionId}`, projectId]));
      for (const { executionId, sandboxId, use } of reported) {
        const projectId = owners.get(`${sandboxId} ${executionId}`);
        if (projectId === undefined || use === undefined) continue;
        const { memoryBytes, diskBytes, ...counted } = use;
        const before = executions.get(executionId);
        const grown = since(before?.counted ?? NONE, counted);
        const told = before === undefined ? {} : { since: before.at };
        const at = now();
        note(executionId, { projectId, counted, memoryBytes, diskBytes, at, grown, ...told });
        executions.set(executionId, { counted, at });
      }
    },

    async flush(store) {
      const taken = waiting;
      waiting = new Map();
      try {
        await store(taken);
      } catch (error) {
        const newer = waiting;
        waiting = taken;
        for (const [id, each] of newer) note(id, each);
        throw error;
      }
      for (const [id, { at }] of executions) if (now() - at > SILENT_MS) executions.delete(id);
    },
  };
}

const NONE: Counters = { cpuMs: 0, sentBytes: 0, receivedBytes: 0 };

/** Two reports as one, of what has grown since before the older one. */
function joined(older: Heard, newer: Heard): Heard {
  const { since: _, ...rest } = newer;
  const told = older.since === undefined ? {} : { since: older.since };
  return { ...rest, grown: plus(older.grown, newer.grown), ...told };
}
