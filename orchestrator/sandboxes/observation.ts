/** Handlers that read metrics and logs of sandboxes. */

import type { MetricSample } from "../../shared/agent-api/routes.ts";
import type { LogEntry } from "../../shared/agent-api/sandbox-log.ts";
import type { SandboxMetric } from "../../shared/api/sandboxes/sandbox-shapes.ts";
import type { sandboxApi } from "../../shared/api/sandboxes/sandboxes.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { iso } from "../forms/time.ts";
import { checkedId } from "../lifecycle/not-found.ts";
import { shown } from "../lifecycle/record-state.ts";
import type { Lifecycle } from "../lifecycle/wire.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { Project } from "../store/projects/record.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { Store } from "../store/store.ts";

export interface ObservationDeps {
  readonly store: Store;
  readonly nodes: Nodes;
  readonly lifecycle: Lifecycle;
  readonly log: Log;
}

type ObservationHandlers = Pick<Handlers<typeof sandboxApi, Project>, "metricsOfMany" | "metrics" | "logsV1" | "logs">;

const NODE_LIMIT = { timeoutMs: 10_000 } as const;
const MAX_IDS = 100;

export function createObservationHandlers(deps: ObservationDeps): ObservationHandlers {
  const { store, nodes, log } = deps;
  const { history, nodeData } = deps.lifecycle;
  return {
    async metricsOfMany({ query }, { caller }) {
      const ids = query.sandbox_ids.split(",").map((id) => checkedId(id.trim()));
      if (ids.length > MAX_IDS)
        throw new AppError("bad_request", `query field 'sandbox_ids' must not have more than ${MAX_IDS} ids`);
      if (new Set(ids).size !== ids.length)
        throw new AppError("bad_request", "query field 'sandbox_ids' must not repeat an id");
      const records = (await store.sandboxes.getMany(ids)).filter(
        (record) => record.projectId === caller.id && shown(record) === "running",
      );
      const byNode = new Map<string, SandboxRecord[]>();
      for (const record of records) byNode.set(record.nodeId, [...(byNode.get(record.nodeId) ?? []), record]);
      const found = await Promise.all([...byNode].map(([nodeId, mine]) => latest(nodeId, mine)));
      return { sandboxes: Object.fromEntries(found.flat()) };
    },

    async metrics({ params, query }, { caller }) {
      const record = await history.find(caller, params.sandboxID, query.ended);
      const { start, end } = query;
      if (start !== undefined && end !== undefined && end < start) {
        throw new AppError("bad_request", "query field 'end' must not be before 'start'");
      }
      const { nodeId, executionId, createdAt } = record;
      const range = {
        start: start === undefined ? createdAt : start * 1000,
        // The requested second counts to its end.
        ...(end === undefined ? {} : { end: end * 1000 + 999 }),
      };
      const from = () => nodes.agent(nodeId).executionMetrics({ params: { executionId }, query: range }, NODE_LIMIT);
      const samples = await nodeData.read(record, "metrics", { from, none: [] });
      return samples.map(toMetric);
    },

    async logsV1({ params, query }, { caller }) {
      const record = await history.find(caller, params.sandboxID, true);
      const logEntries = await entries(record, {
        limit: query.limit ?? 1000,
        direction: "forward",
        ...defined({ cursor: query.start }),
      });
      const logs = logEntries.map((entry) => ({ timestamp: entry.timestamp, line: toLine(entry) }));
      return { logs, logEntries };
    },

    async logs({ params, query }, { caller }) {
      const record = await history.find(caller, params.sandboxID, true);
      const { ended: _, limit = 1000, direction = "backward", ...rest } = query;
      return { logs: await entries(record, { ...rest, limit, direction }) };
    },
  };

  async function latest(nodeId: string, mine: readonly SandboxRecord[]): Promise<[string, SandboxMetric][]> {
    try {
      const executionIds = mine.map(({ executionId }) => executionId);
      const samples = await nodes.agent(nodeId).latestMetrics({ body: { executionIds } }, NODE_LIMIT);
      return mine.flatMap(({ id, executionId }) => {
        const sample = samples[executionId];
        return sample === undefined ? [] : [[id, toMetric(sample)] as [string, SandboxMetric]];
      });
    } catch (error) {
      // A silent node must not hide the others' metrics; its sandboxes are absent, like unknown ones.
      log.warn({ err: error, nodeId }, "could not read the metrics of a node");
      return [];
    }
  }

  async function entries(
    record: SandboxRecord,
    query: {
      readonly limit: number;
      readonly direction: "forward" | "backward";
      readonly cursor?: number;
      readonly level?: "debug" | "info" | "warn" | "error";
      readonly search?: string;
    },
  ): Promise<LogEntry[]> {
    const { nodeId, executionId } = record;
    const from = () => nodes.agent(nodeId).executionLogs({ params: { executionId }, query }, NODE_LIMIT);
    return nodeData.read(record, "logs", { from, none: [] });
  }
}

function toMetric({ at, ...sample }: MetricSample): SandboxMetric {
  return { timestamp: iso(at), timestampUnix: Math.floor(at / 1000), ...sample };
}

// The CLI parses each line as JSON and needs `level` in it.
function toLine({ level, message, fields }: LogEntry): string {
  return JSON.stringify({ ...fields, logger: fields.logger ?? "process", level, message });
}
