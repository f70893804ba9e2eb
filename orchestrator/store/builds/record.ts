/** The table of builds: its columns, and what a record makes of them. */

import { flag, group, list, number, type RecordOf, type RowOf, table, text } from "../codec.ts";
import type { StoredBytes } from "../storage/stored-bytes.ts";
import { volumeMounts } from "../volumes/record.ts";

/** Size of a snapshot or fork on its node; undefined until the node has answered. */
export const buildSize = group({
  memoryBytes: number("stored_memory_bytes"),
  diskBytes: number("stored_disk_bytes"),
}).as<StoredBytes>();

/** New rows begin as a build that no node built: a snapshot, or the platform's own image. */
export const buildTable = table(
  {
    id: text("id"),
    templateId: text("template_id"),
    status: text("status").as<"waiting" | "building" | "ready" | "error">(),
    image: text("image"),
    cpuCount: number("cpu_count"),
    memoryMB: number("memory_mb"),
    diskSizeMB: number("disk_mb"),
    envdVersion: text("envd_version"),
    defaultUser: text("default_user").later(),
    defaultWorkdir: text("default_workdir").later(),
    createdAt: number("created_at"),
    updatedAt: number("updated_at"),
    finishedAt: number("finished_at").later(),
    /** `fork`: a checkpoint that exists only while forks start from it. A snapshot's or fork's id is its id on the node. */
    kind: text("kind").as<"template" | "snapshot" | "fork">(),
    /** The only node that has, or makes, the build's files; undefined when any node can start it, and in the queue. */
    nodeId: text("node_id").later(),
    memory: flag("memory").later(false),
    sourceSandboxId: text("source_sandbox_id").later(),
    /** Tags that a template's build gets once it is ready. */
    wantedTags: list("tags").as<readonly string[]>().initially([]),
    /** `BuildSettings`, sealed (builds/settings.ts): what its sandboxes start with. */
    sealedSettings: text("settings").later(),
    /** The build that this one is based on. */
    parentBuildId: text("parent_build_id").later(),
    /** Checkpoint of a template whose start command runs: sandboxes start as copies of it, on the build's node. */
    snapshotId: text("snapshot_id").later(),
    size: buildSize,
    startedAt: number("started_at").later(),
    /** The time at which a build that is still building fails. */
    deadlineAt: number("deadline_at").later(),
    /** The image's registry needs credentials, which are in the memory of the build's owner only. */
    withAccess: flag("with_access").initially(false),
    /** The node has confirmed the start request. */
    accepted: flag("accepted").initially(false),
    /** Number of entries of the node's log that have been read. */
    logOffset: number("log_offset").initially(0),
    /** What the source of a snapshot mounted, and what its copies mount. */
    volumeMounts: volumeMounts.initially([]),
    /** The reason why the build failed. */
    reason: group({ message: text("reason_message"), step: text("reason_step").later() }),
  },
  {
    /** The start request for the node, sealed; null before the build starts and after it has ended. */
    sealedBody: text("body").later(),
    /** Length of its stored log; at the limit further entries are dropped. */
    logCharacters: number("log_characters").initially(0),
    /** The orchestrator that has its registry's credentials, as a member; null where nobody needs to have any. */
    owner: text("owner").later(),
    ownerEpoch: number("owner_epoch").later(),
  },
);

export type Build = RecordOf<typeof buildTable>;
export type BuildRow = RowOf<typeof buildTable>;

export const toBuild = buildTable.toRecord;
