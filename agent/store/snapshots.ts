/** Snapshots of this node, and the container or image of each disk. The only SQL on that table, apart from migrations. */

import type { BuildReference, Resources } from "../../shared/agent-api/routes.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { controlContext, type Sqlite } from "./database/database.ts";

/** The facts that a container needs to run again, besides an address. */
export interface SnapshotDisk {
  readonly containerId: string;
  /** The container whose disk image this one takes over, and its own id where it has had no container yet; undefined once that is done. */
  readonly takenFrom?: string | undefined;
  readonly controlToken: string;
  readonly build: BuildReference;
  readonly resources: Resources;
  /** Directory of its mounted envd runtime. */
  readonly runtime: string;
  readonly upperDirectory: string | undefined;
  readonly createdAt: number;
}

export interface Snapshot {
  readonly id: string;
  readonly kind: "pause" | "checkpoint";
  /**
   * `taking`: begun; after a crash it is finished or undone. `stored`: durable.
   * `spent`: of a pause whose sandbox runs again; only its memory image remains.
   */
  readonly state: "taking" | "stored" | "spent";
  readonly sandboxId: string;
  readonly executionId: string;
  /** The project that owns it; undefined: stored by an agent that did not record projects. */
  readonly projectId: string | undefined;
  /** For a pause: the sandbox's own container. For a checkpoint: its source, which continues independently. */
  readonly disk: SnapshotDisk;
  /** Image of a checkpoint's disk; undefined for a pause. */
  readonly image: string | undefined;
  readonly memory: boolean;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly takenAt: number;
  /** For a pause: a resume with its memory has begun, so its processes may have run since they were stored. */
  readonly resuming: boolean;
  /** The orchestrator's row of the sandbox; undefined: it sent none. */
  readonly record?: string | undefined;
  /** In the holding place: no record of the store names it, and it is deleted at `until`. Undefined: it is in use. */
  readonly held?: Held | undefined;
}

/** Unix milliseconds. */
interface Held {
  readonly since: number;
  readonly until: number;
  readonly reason: string;
}

/** `takenFrom`: it still has to take over that one's disk. */
type MovedDisk = Pick<SnapshotDisk, "containerId" | "takenFrom" | "upperDirectory">;

export type StoredSizes = Pick<Snapshot, "memoryBytes" | "diskBytes" | "takenAt">;

export interface SnapshotStore {
  /** Called before any other step of the snapshot, so that a crash from here on leaves a row. */
  intend(snapshot: Omit<Snapshot, "resuming" | "held">): void;
  /**
   * Records that the snapshot is stored. The row is on the disk when this returns, unless the snapshot lives for one call.
   * @param also in the same transaction
   */
  keep(id: string, sizes: StoredSizes, also: () => void, durable?: boolean): void;
  /** `also` is part of the same transaction. */
  setResuming(id: string, resuming: boolean, also?: () => void): void;
  /** Records the container that takes over the disk of a lost one. The row is on the disk when this returns. */
  moveDisk(id: string, moved: MovedDisk): void;
  /** Records that the snapshot's sandbox runs again. `also` is part of the same transaction. */
  spend(id: string, also: () => void): void;
  remove(id: string): void;
  /** Puts it into the holding place; undefined takes it back. */
  hold(id: string, held: Held | undefined): void;
  /** @throws {AppError} internal when the key differs from the one that sealed it */
  get(id: string): Snapshot | undefined;
  /** What a paused sandbox is stored as. @throws as `get` */
  pausedOf(sandboxId: string): Snapshot | undefined;
  all(): Snapshot[];
}

interface Row {
  id: string;
  kind: Snapshot["kind"];
  state: Snapshot["state"];
  sandbox_id: string;
  execution_id: string;
  container_id: string;
  /** JSON; the control token in it is sealed. */
  disk: string;
  image: string | null;
  memory: number;
  memory_bytes: number;
  disk_bytes: number;
  taken_at: number;
  project_id: string | null;
  resuming: number;
  record: string | null;
  held_since: number | null;
  held_until: number | null;
  held_reason: string | null;
}

export function snapshotStore(database: Sqlite, sealing: Seal): SnapshotStore {
  const insert = database.prepare<
    Omit<Row, "resuming" | "held_since" | "held_until" | "held_reason">
  >(`insert into snapshots values (
    @id, @kind, @state, @sandbox_id, @execution_id, @container_id, @disk, @image, @memory, @memory_bytes, @disk_bytes,
    @taken_at, @project_id, 0, @record, null, null, null)`);
  const keep = database.prepare<[number, number, number, string]>(
    "update snapshots set state = 'stored', memory_bytes = ?, disk_bytes = ?, taken_at = ? where id = ?",
  );
  const spend = database.prepare<[string]>(
    "update snapshots set state = 'spent', resuming = 0, held_since = null, held_until = null where id = ?",
  );
  const setResuming = database.prepare<[number, string]>("update snapshots set resuming = ? where id = ?");
  const hold = database.prepare<[number | null, number | null, string | null, string]>(
    "update snapshots set held_since = ?, held_until = ?, held_reason = ? where id = ?",
  );
  const moveDisk = database.prepare<[string, string | null, string | null, string]>(
    "update snapshots set container_id = ?, disk = json_set(disk, '$.takenFrom', ?, '$.upperDirectory', ?) where id = ?",
  );
  const remove = database.prepare<[string]>("delete from snapshots where id = ?");
  const get = database.prepare<[string], Row>("select * from snapshots where id = ?");
  const pausedOf = database.prepare<[string], Row>(
    "select * from snapshots where sandbox_id = ? and kind = 'pause' and state = 'stored'",
  );
  const all = database.prepare<[], Row>("select * from snapshots");

  // A power cut may lose the last rows of other tables, because it ends their containers too, but no snapshot's row.
  const durably = (work: () => void) => {
    database.pragma("synchronous = FULL");
    try {
      database.transaction(work)();
    } finally {
      database.pragma("synchronous = NORMAL");
    }
  };

  return {
    intend({ disk, image, ...snapshot }) {
      const { id, kind, state, sandboxId, executionId, projectId, memory, record } = snapshot;
      const { containerId, controlToken, ...rest } = disk;
      insert.run({
        id,
        kind,
        state,
        sandbox_id: sandboxId,
        execution_id: executionId,
        container_id: containerId,
        disk: JSON.stringify({ ...rest, controlToken: sealing.close(controlToken, controlContext(id)) }),
        image: image ?? null,
        memory: Number(memory),
        memory_bytes: snapshot.memoryBytes,
        disk_bytes: snapshot.diskBytes,
        taken_at: snapshot.takenAt,
        project_id: projectId ?? null,
        record: record ?? null,
      });
    },
    keep(id, { memoryBytes, diskBytes, takenAt }, also, durable = true) {
      const work = () => {
        keep.run(memoryBytes, diskBytes, takenAt, id);
        also();
      };
      if (durable) durably(work);
      else database.transaction(work)();
    },
    setResuming: (id, resuming, also) =>
      database.transaction(() => {
        setResuming.run(Number(resuming), id);
        also?.();
      })(),
    moveDisk: (id, { containerId, takenFrom, upperDirectory }) =>
      durably(() => void moveDisk.run(containerId, takenFrom ?? null, upperDirectory ?? null, id)),
    spend: (id, also) =>
      database.transaction(() => {
        spend.run(id);
        also();
      })(),
    remove: (id) => void remove.run(id),
    hold: (id, held) => void hold.run(held?.since ?? null, held?.until ?? null, held?.reason ?? null, id),
    get(id) {
      const row = get.get(id);
      return row === undefined ? undefined : toSnapshot(row, sealing);
    },
    pausedOf(sandboxId) {
      const row = pausedOf.get(sandboxId);
      return row === undefined ? undefined : toSnapshot(row, sealing);
    },
    all: () => all.all().map((row) => toSnapshot(row, sealing)),
  };
}

function toSnapshot(row: Row, sealing: Seal): Snapshot {
  const rest = JSON.parse(row.disk) as Omit<SnapshotDisk, "containerId" | "upperDirectory" | "takenFrom"> & {
    upperDirectory?: string | null;
    takenFrom?: string | null;
  };
  return {
    id: row.id,
    kind: row.kind,
    state: row.state,
    sandboxId: row.sandbox_id,
    executionId: row.execution_id,
    projectId: row.project_id ?? undefined,
    disk: {
      ...rest,
      containerId: row.container_id,
      controlToken: sealing.open(rest.controlToken, controlContext(row.id)),
      upperDirectory: rest.upperDirectory ?? undefined,
      takenFrom: rest.takenFrom ?? undefined,
    },
    image: row.image ?? undefined,
    memory: row.memory === 1,
    memoryBytes: row.memory_bytes,
    diskBytes: row.disk_bytes,
    takenAt: row.taken_at,
    resuming: row.resuming === 1,
    record: row.record ?? undefined,
    held:
      row.held_since === null || row.held_until === null
        ? undefined
        : { since: row.held_since, until: row.held_until, reason: row.held_reason ?? "" },
  };
}
