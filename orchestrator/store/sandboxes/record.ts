/** The table of sandboxes: its columns, and what a record of the orchestrator makes of them. */

import type { IdentityTokens } from "../../../shared/api/identity/iam.ts";
import type { NetworkOptions } from "../../../shared/api/network.ts";
import type { Seal } from "../../../shared/program/sealing/seal.ts";
import type { End, EndReason } from "../../../shared/states/end-reason.ts";
import type { SandboxState } from "../../../shared/states/sandbox-state.ts";
import {
  type ChangeOfTable,
  flag,
  group,
  json,
  type NewRecordOf,
  number,
  type RecordOf,
  type RowOf,
  sealedJson,
  table,
  text,
} from "../codec.ts";
import { networkContext } from "../sealed/contexts.ts";
import type { StoredBytes } from "../storage/stored-bytes.ts";
import { volumeMounts } from "../volumes/record.ts";

/** Place of the snapshot on the sandbox's node. */
export interface Snapshot {
  readonly id: string;
  readonly memory: boolean;
  /** Absent until the node has reported it. */
  readonly size?: StoredBytes | undefined;
}

export type Rewind = NonNullable<SandboxRecord["rewind"]>;

/** The request of a resume, so that it can be finished after a crash. */
export type Resumption = NonNullable<SandboxRecord["resumption"]>;

export const snapshotSize = group({
  memoryBytes: number("snapshot_memory_bytes"),
  diskBytes: number("snapshot_disk_bytes"),
}).as<StoredBytes>();

/** @param sealing seals the network options for their sandbox alone: rules carry headers, as secret as passwords */
export function sandboxTable(sealing: Seal) {
  return table(
    {
      id: text("id"),
      projectId: text("project_id"),
      state: text("state").as<SandboxState>().initially("starting"),
      executionId: text("execution_id"),
      nodeId: text("node_id"),
      address: text("address").later(),
      templateId: text("template_id"),
      buildId: text("build_id"),
      alias: text("alias").optional(),
      cpuCount: number("cpu_count"),
      memoryMB: number("memory_mb"),
      diskSizeMB: number("disk_mb"),
      envdVersion: text("envd_version"),
      metadata: json("metadata").as<Readonly<Record<string, string>>>(),
      /** Network options without the egress proxy's password. */
      network: sealedJson("network", sealing, networkContext).as<NetworkOptions>().optional(),
      /** Older rows have none. */
      sealedProxyPassword: text("proxy_password").optional(),
      /** Number of changes of `network` that were begun. */
      networkVersion: number("network_version").initially(0),
      volumeMounts,
      /** `allow_internet_access` as the caller gave it. */
      internet: flag("internet").optional(),
      /** Workload identity tokens that its rules may name. */
      iam: json("iam").as<IdentityTokens>().optional(),
      onTimeout: text("on_timeout").as<"kill" | "pause">(),
      /** Whether a pause at the timeout keeps memory. */
      onTimeoutMemory: flag("on_timeout_memory"),
      /** What a connect restores when it does not say. */
      onResume: text("on_resume").as<"restore" | "reboot">(),
      autoResume: flag("auto_resume"),
      /** The timeout of the create request. */
      timeoutSeconds: number("timeout_s"),
      createdAt: number("created_at"),
      startedAt: number("started_at"),
      endAt: number("end_at"),
      endedAt: number("ended_at").later(),
      /** How it ended: set by the move to `killing`, or by the move to `gone` without one; once, and never changed. */
      end: group({
        reason: text("end_reason").as<EndReason>(),
        /** Of the sandbox's first process, when its node saw it exit. */
        exitCode: number("exit_code").later(),
        detail: text("end_detail").later(),
      }).as<End>(),
      /** The snapshot that a paused sandbox resumes from. Kept while it starts, and after a start without memory. */
      snapshot: group({
        id: text("snapshot_id"),
        memory: flag("snapshot_memory"),
        size: snapshotSize,
      }).as<Snapshot>(),
      /** A pause or checkpoint under way, written before the node is asked: after a crash it is repeated or dropped. */
      pendingSnapshot: group({
        id: text("pending_snapshot_id"),
        memory: flag("pending_snapshot_memory"),
        /** Share of the project's quota that it may fill; absent without a quota. */
        reservedBytes: number("pending_snapshot_bytes").later(),
      }),
      /** The resume under way: whether memory was asked for, and its timeout in seconds, from when the sandbox runs. */
      resumption: group({ seconds: number("resume_s"), memory: flag("resume_memory") }),
      /**
       * The rewind under way: the execution that takes the place of `executionId`, the state it starts from, and where the
       * sandbox stays when the rewind fails.
       */
      rewind: group({
        executionId: text("rewind_execution_id"),
        snapshotId: text("rewind_snapshot_id"),
        memory: flag("rewind_memory"),
        from: text("rewind_from").as<"running" | "paused">(),
        /** Seconds from when it runs to its end; absent: its end stays. */
        seconds: number("rewind_s").later(),
      }),
      /** The sandbox that it was forked from, and when its state was taken. */
      forkedFrom: group({ id: text("forked_from"), at: number("forked_at") }),
      /** Names the seed of its tokens (orchestrator/base/keys/seeds.ts); undefined: the oldest one. */
      seedId: text("seed_id").optional(),
    },
    {
      /** Sealed (shared/program/seal.ts). */
      sealedEnvs: text("envs"),
      /** A change of `network` that the node may or may not have carried out; sealed (networks.ts). */
      sealedNetworkChange: text("network_change").later(),
      /** Deadline of the transition under way; 0 in a state of rest. */
      deadlineAt: number("deadline_at"),
      /** The end that an orchestrator is about to carry out (expired.ts), and how long others leave the sandbox alone. */
      expiringEndAt: number("expiring_end_at").later(),
      expiringUntil: number("expiring_until").later(),
    },
  );
}

export type SandboxTable = ReturnType<typeof sandboxTable>;
export type SandboxRow = RowOf<SandboxTable>;
/** A sandbox as the orchestrator stores it. Times are unix milliseconds. */
export type SandboxRecord = RecordOf<SandboxTable>;
/** The fields that a list shows: a third of the columns, and none that is sealed. */
export const LISTED = [
  "id",
  "state",
  "templateId",
  "alias",
  "cpuCount",
  "memoryMB",
  "diskSizeMB",
  "envdVersion",
  "metadata",
  "volumeMounts",
  "startedAt",
  "endAt",
  "endedAt",
  "end",
  "snapshot",
  "resumption",
] as const satisfies readonly (keyof SandboxRecord)[];
export type ListedRecord = Pick<SandboxRecord, (typeof LISTED)[number]>;
export type NewSandbox = NewRecordOf<SandboxTable>;
/** What a move sets beside the state. */
export type MoveSet = ChangeOfTable<SandboxTable>;

/** The fields that a change of network options replaces. */
export interface NetworkColumns {
  readonly network: NetworkOptions | undefined;
  readonly internet: boolean | undefined;
  readonly sealedProxyPassword: string | undefined;
}
