/** Complete records of sandboxes for tests of stores and of pure files; a test sets only the fields that it is about. */

import { type NewSandbox, type SandboxRecord, sandboxTable } from "../../../orchestrator/store/sandboxes/record.ts";
import { testSeal } from "./test-seal.ts";

export function newSandbox(over: Partial<NewSandbox> = {}): NewSandbox {
  return {
    id: "i1",
    projectId: "p",
    executionId: "e1",
    nodeId: "n1",
    templateId: "t",
    buildId: "b",
    alias: undefined,
    cpuCount: 1,
    memoryMB: 128,
    diskSizeMB: 0,
    envdVersion: "0.6.13",
    metadata: {},
    volumeMounts: [],
    network: undefined,
    sealedProxyPassword: undefined,
    internet: undefined,
    iam: undefined,
    onTimeout: "kill",
    onTimeoutMemory: true,
    onResume: "restore",
    autoResume: false,
    timeoutSeconds: 300,
    createdAt: 1,
    startedAt: 1,
    endAt: 2,
    deadlineAt: 10,
    sealedEnvs: "",
    seedId: undefined,
    ...over,
  };
}

/** A record of a running sandbox. */
export function sandboxRecord(over: Partial<SandboxRecord> = {}): SandboxRecord {
  const { toRecord, toRow } = sandboxTable(testSeal);
  return { ...toRecord({ ...toRow(newSandbox()), address: "10.0.0.2" }), state: "running", ...over };
}
