/** All tables, and the writes that span two of them, such as a move and its event. */

import type { Transaction } from "kysely";
import type { EventType } from "../../shared/api/events.ts";
import { defined } from "../../shared/defined.ts";
import type { KeyedSeal } from "../../shared/program/sealing/seal.ts";
import { auditStore } from "./audit/audit.ts";
import { buildStore } from "./builds/builds.ts";
import { buildLeftovers } from "./builds/leftovers.ts";
import { buildListing } from "./builds/listed.ts";
import { buildLogStore } from "./builds/logs.ts";
import { type Build } from "./builds/record.ts";
import { changeLog, noChanges } from "./changes/changes.ts";
import type { Kind } from "./changes/record.ts";
import type { Condition } from "./condition.ts";
import { eventStore } from "./events/events.ts";
import { noteGivenUp } from "./given-up.ts";
import { identityStore } from "./identity/identity.ts";
import { keyStore } from "./keys/keys.ts";
import { authorityStore } from "./machines/authorities.ts";
import { machineStore } from "./machines/machines.ts";
import type { Member } from "./membership/record.ts";
import { networkStore } from "./networks.ts";
import { drainStore } from "./nodes/drains.ts";
import { nodeEventStore } from "./nodes/node-events.ts";
import { nodeStartsStore } from "./nodes/node-starts.ts";
import { nodeStore } from "./nodes/nodes.ts";
import { onlyOwn, operationStore } from "./operations/operations.ts";
import { Overtaken } from "./operations/record.ts";
import { allSandboxStore } from "./projects/all-sandboxes.ts";
import { projectDeletionStore } from "./projects/deletions.ts";
import { projectStore } from "./projects/projects.ts";
import { projectUseStore } from "./projects/use.ts";
import { workspaceStore } from "./projects/workspaces.ts";
import { adoptedStore } from "./sandboxes/adopted.ts";
import { heldStore } from "./sandboxes/held.ts";
import { countsOthers, type Move } from "./sandboxes/move.ts";
import { pausedSandboxStore } from "./sandboxes/paused.ts";
import { type NetworkColumns, type SandboxRecord, sandboxTable } from "./sandboxes/record.ts";
import { sandboxStore } from "./sandboxes/sandboxes.ts";
import { sealedStore } from "./sealed/sealed.ts";
import { seedStore } from "./sealed/seeds.ts";
import { secretStore } from "./secrets/secrets.ts";
import { secretUseStore } from "./secrets/uses.ts";
import { sessionStore } from "./sessions/sessions.ts";
import { type NewSnapshot, snapshotStore } from "./snapshots.ts";
import { blobRefStore } from "./storage/blob-refs.ts";
import { type Old, type StoredItem, storageStore } from "./storage/storage.ts";
import type { StoredBytes } from "./storage/stored-bytes.ts";
import type { Database, Session, Tables } from "./tables.ts";
import { tagStore } from "./templates/tags.ts";
import { templateStore } from "./templates/templates.ts";
import { inTransaction } from "./transactions.ts";
import { usageStore } from "./usage/usage.ts";
import { volumeStore } from "./volumes/volumes.ts";
import { deliveryStore } from "./webhooks/deliveries.ts";
import { webhookStore } from "./webhooks/webhooks.ts";

export interface NewEvent {
  readonly type: EventType;
  readonly data?: Readonly<Record<string, unknown>>;
}

interface HeldNote {
  readonly nodeId: string;
  /** Of the execution or snapshot. */
  readonly id: string;
  readonly object: { readonly kind: string; readonly id: string };
  readonly record: SandboxRecord | undefined;
}

export type Store = ReturnType<typeof createStore>;

const ALWAYS: Pick<Condition, "admit" | "essential"> = { admit: () => undefined, essential: (write) => write() };

interface StoreOptions {
  /** Of the database's disk; absent: it has room. */
  readonly condition?: Pick<Condition, "admit" | "essential">;
  /** This process as one of several; absent: no other one works on the sandboxes. */
  readonly members?: { readonly self: Member | undefined };
}

/** @param sealing encrypts the columns that must not be readable in the file */
export function createStore(
  db: Database,
  now: () => number,
  sealing: KeyedSeal,
  { condition = ALWAYS, members }: StoreOptions = {},
) {
  const table = sandboxTable(sealing);
  const only = members === undefined;
  const operations = only ? onlyOwn : operationStore(db, () => members.self);
  const changes = only ? noChanges(db) : changeLog(db, () => members.self);
  const sandboxes = sandboxStore(db, { table, now, operations, changes, alone: only });
  const events = eventStore(db, now);
  const snapshots = snapshotStore(db, { now, operations });
  const networks = networkStore(db, { table, operations, alone: only });
  const storage = storageStore(db);
  const held = heldStore(db, now);
  const audit = auditStore(db);

  /** Deletes snapshots, with an event of each one's source. */
  const dropped = (reason: string, drop: (session: Session) => Promise<StoredItem[]>) =>
    inTransaction(db, async (session) => {
      const items = await drop(session);
      for (const { snapshotId, sandbox } of items) {
        await events.add(session, "snapshot_deleted", sandbox, { snapshot_id: snapshotId, reason });
      }
      // After all events: whoever has the audit log's lock waits for no row any more.
      for (const { projectId, snapshotId } of items) {
        await audit.noteUnlessRequested(session, {
          at: now(),
          action: "deleteSnapshot",
          projectId,
          object: { kind: "snapshot", id: snapshotId },
          details: { reason },
        });
      }
      return items;
    });

  return {
    sandboxes,
    operations,
    events,
    snapshots,
    networks,
    held,
    adopted: adoptedStore(db, { table, sealing, now, changes }),
    pausedSandboxes: pausedSandboxStore(db),
    projects: projectStore(db, { now, changes }),
    projectUse: projectUseStore(db, now),
    projectDeletions: projectDeletionStore(db, { now, changes }),
    workspaces: workspaceStore(db, now),
    allSandboxes: allSandboxStore(db),
    keys: keyStore(db, { now, changes }),
    sessions: sessionStore(db, now),
    secrets: secretStore(db, now),
    secretUses: secretUseStore(db, now),
    sealed: sealedStore(db, sealing),
    seeds: seedStore(db),
    identity: identityStore(db, now),
    templates: templateStore(db, now),
    builds: buildStore(db, { now, ...defined({ members }) }),
    buildListing: buildListing(db),
    buildLogs: buildLogStore(db),
    buildLeftovers: buildLeftovers(db, now),
    tags: tagStore(db, now),
    nodes: nodeStore(db, { now, changes, audit, alone: only }),
    nodeEvents: nodeEventStore(db),
    nodeStarts: nodeStartsStore(db, { self: () => members?.self?.id, now, alone: only }),
    drains: drainStore(db, now),
    machines: machineStore(db, { now, audit }),
    authorities: authorityStore(db, now),
    volumes: volumeStore(db, now),
    storage,
    blobRefs: blobRefStore(db, now),
    usage: usageStore(db),
    webhooks: webhookStore(db, { now, sealing, events }),
    deliveries: deliveryStore(db, { now, sealing }),
    audit,

    /** The record after the move. Undefined: another state, another execution, or its end has not passed. */
    async move(move: Move, event?: NewEvent): Promise<SandboxRecord | undefined> {
      const end = move.set?.end ?? undefined;
      const alone = only && event === undefined && end === undefined && !countsOthers(move.when ?? {});
      if (alone) return condition.essential(() => sandboxes.move(db, move));
      return condition.essential(() =>
        moving(db, async (session) => {
          const moved = await sandboxes.move(session, move);
          if (moved === undefined) return undefined;
          if (event !== undefined) await events.add(session, event.type, moved, event.data);
          if (end !== undefined) {
            const { id, projectId } = moved;
            await audit.noteUnlessRequested(session, {
              at: now(),
              action: "endSandbox",
              projectId,
              object: { kind: "sandbox", id },
              details: { reason: end.reason },
            });
          }
          return moved;
        }),
      );
    },

    /** Called before something new begins. @throws {AppError} no_space, unavailable */
    admit: () => condition.admit(),

    /** A node was asked to hold what no record names, which is noted once; the event is of its sandbox, where the store knows it. */
    async noteHeld({ nodeId, object, id, record }: HeldNote): Promise<void> {
      await inTransaction(db, async (session) => {
        if (!(await noteGivenUp(session, id, now()))) return;
        if (record !== undefined) {
          await events.add(session, "snapshot_held", record, { snapshot_id: object.id, node_id: nodeId });
        }
        await audit.noteUnlessRequested(session, {
          at: now(),
          action: "hold",
          projectId: record?.projectId,
          object,
          details: { nodeId },
        });
      });
    },

    /** Its node has frozen or thawed the sandbox, with its event. False: that is known already. */
    async setHeld(record: SandboxRecord, is: boolean): Promise<boolean> {
      const { id: sandboxId, executionId, nodeId } = record;
      return inTransaction(db, async (session) => {
        const changed = is
          ? await held.hold(session, { executionId, sandboxId, nodeId })
          : await held.release(session, executionId);
        if (!changed) return false;
        await events.add(session, is ? "held" : "released", record, { reason: "disk" });
        await changes.note(session, "sandbox", sandboxId);
        return true;
      });
    },

    /** Adds an event without a change of state. */
    async addEvent(record: SandboxRecord, event: NewEvent): Promise<void> {
      await inTransaction(db, (session) => events.add(session, event.type, record, event.data));
    },

    /** A move to `snapshotting` and the build of the snapshot, in one transaction. */
    async beginSnapshot(move: Move, snapshot: NewSnapshot): Promise<SandboxRecord | undefined> {
      return moving(db, async (session) => {
        const moved = await sandboxes.move(session, move);
        if (moved !== undefined) await snapshots.begin(session, snapshot);
        return moved;
      });
    },

    /**
     * The snapshot is durable, its build can be started from, and the sandbox continues. Undefined: the sandbox had ended
     * or the snapshot was dropped; nothing is changed then.
     */
    async finishSnapshot(
      move: Move,
      taken: {
        readonly id: string;
        readonly image: string | undefined;
        readonly memory: boolean;
        readonly size?: StoredBytes;
      },
      tag: string | undefined,
    ): Promise<{ readonly record: SandboxRecord; readonly build: Build } | undefined> {
      return moving(db, async (session) => {
        const record = await sandboxes.move(session, move);
        if (record === undefined) return undefined;
        const build = await snapshots.finish(session, taken.id, { ...taken, tag });
        // A deletion of its template has dropped it, or another orchestrator.
        if (build === undefined) throw new Overtaken();
        await events.add(session, "checkpointed", record, { snapshot_id: taken.id });
        return { record, build };
      });
    },

    /** Drops the snapshot: its node will delete it, and the sandbox continues if it still runs. */
    async giveUpSnapshot(buildId: string, move?: Move): Promise<SandboxRecord | undefined> {
      const record = await moving(db, async (session) => {
        const moved = move === undefined ? undefined : await sandboxes.move(session, move);
        await snapshots.drop(session, buildId);
        return moved;
      });
      // Where another orchestrator has taken the sandbox over, nothing was changed.
      if (record === undefined && move !== undefined)
        await inTransaction(db, (session) => snapshots.drop(session, buildId));
      return record;
    },

    /** As `storage.dropUnused`, with an event of each snapshot's source. */
    expireSnapshots: (old: Old): Promise<StoredItem[]> =>
      dropped("expired", (session) => storage.dropUnused(session, old)),

    /** Deletes the records of all snapshots that were only on a node that was removed, with the same events. */
    loseSnapshots: (nodeId: string): Promise<StoredItem[]> =>
      dropped("node_removed", (session) => storage.dropOn(session, nodeId)),

    /** As `networks.commit`, with its event. */
    async changeNetwork(
      record: SandboxRecord,
      columns: NetworkColumns,
      data: Readonly<Record<string, unknown>>,
    ): Promise<SandboxRecord | undefined> {
      return moving(db, async (session) => {
        const changed = await networks.commit(session, record, columns);
        if (changed !== undefined) await events.add(session, "updated", changed, data);
        return changed;
      });
    },

    /** Others may have in their memory what has changed in the database already. */
    async tellOthers(kind: Kind, subjects: readonly string[]): Promise<void> {
      await inTransaction(db, async (session) => {
        for (const subject of subjects) await changes.note(session, kind, subject);
      });
    },

    /** As `sandboxes.setEnd`, with its event. */
    async setEnd(
      id: string,
      end: { readonly at: number; readonly extendOnly: boolean },
    ): Promise<SandboxRecord | undefined> {
      return inTransaction(db, async (session) => {
        const record = await sandboxes.setEnd(session, id, end);
        if (record === undefined) return undefined;
        await events.add(session, "updated", record, { set_timeout: new Date(record.endAt).toISOString() });
        return record;
      });
    },
  };
}

/** As `inTransaction`. Undefined: another orchestrator has taken over what was to be moved, and nothing is changed. */
async function moving<T>(db: Database, work: (session: Transaction<Tables>) => Promise<T>): Promise<T | undefined> {
  try {
    return await inTransaction(db, work);
  } catch (error) {
    if (error instanceof Overtaken) return undefined;
    throw error;
  }
}
