/** The report of a fake agent: a big, idle machine, and the executions that a test started on it. */

import type {
  Heartbeat,
  LiveExecution,
  NodeFacts,
  StartRequest,
  StoredSnapshot,
} from "../../../shared/agent-api/routes.ts";

const MIB = 1024 * 1024;

/** The state of a sandbox that runs. */
export interface Standing {
  /** Whether the node holds the sandbox because the disk is short. */
  held?: boolean;
}

interface Live extends Standing {
  readonly executionId: string;
  readonly body: StartRequest;
  readonly startedAt: number;
  readonly endAt: number;
}

/** Values that replace the usual ones of the report. */
interface Overrides {
  readonly proxyUrl?: string;
  readonly facts?: Partial<NodeFacts>;
  readonly load?: Partial<Heartbeat["load"]>;
}

export function fakeHeartbeat(facts: {
  readonly nodeId: string;
  readonly url: string;
  readonly serviceInstanceId: string;
  readonly address: string;
  readonly options: Overrides;
  readonly live: readonly Live[];
  readonly snapshots: readonly StoredSnapshot[];
  readonly store?: Heartbeat["store"];
}): Heartbeat {
  const { nodeId, url, serviceInstanceId, address, options, live, snapshots, store } = facts;
  const executions: LiveExecution[] = live.map(({ executionId, body, startedAt, endAt, held }) => ({
    executionId,
    sandboxId: body.sandboxId,
    address,
    startedAt,
    endAt,
    ...(held === true ? { held } : {}),
  }));
  return {
    node: {
      nodeId,
      serviceInstanceId,
      version: "0.1.0",
      commit: "fake",
      apiUrl: url,
      proxyUrl: options.proxyUrl ?? url,
      machineId: "fake-machine",
      labels: {},
      machine: { cpuFamily: "6", cpuModel: "1", cpuModelName: "Fake", cpuArchitecture: "x64" },
      capabilities: { memorySnapshots: true, diskLimit: false, volumes: true, records: true, detail: {} },
      maxSandboxes: 10_000,
      ...options.facts,
    },
    load: {
      cpuCount: 64,
      cpuPercent: 0,
      memoryTotalBytes: 256 * 1024 * MIB,
      memoryUsedBytes: 0,
      allocatedCpu: live.reduce((sum, { body }) => sum + body.resources.cpuCount, 0),
      allocatedMemoryBytes: live.reduce((sum, { body }) => sum + body.resources.memoryMB * MIB, 0),
      sandboxCount: live.length,
      sandboxStartingCount: 0,
      stored: { storedBytes: 4_000, quotaBytes: 9_000 },
      sandboxDisk: {
        promisedBytes: live.reduce((sum, { body }) => sum + body.resources.diskSizeMB * MIB, 0),
        usedBytes: 0,
        freeBytes: 2 ** 50,
        reserveBytes: 2 ** 40,
        short: false,
      },
      disks: [],
      pools: [],
      ...options.load,
    },
    executions,
    exits: [],
    snapshots: [...snapshots],
    ...(store === undefined ? {} : { store }),
  };
}
