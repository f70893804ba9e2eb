/** The containers this agent started and still owns. The only SQL on that table, apart from migrations. */

import type { BuildReference, Resources } from "../../shared/agent-api/routes.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { controlContext, type Sqlite } from "./database/database.ts";

/** Facts for taking a container over after a restart. */
export interface KnownContainer {
  readonly id: string;
  readonly slot: number;
  /** 0: it is being started. */
  readonly pid: number;
  readonly controlToken: string;
  readonly build: BuildReference;
  readonly resources: Resources;
  readonly runtime: string;
  readonly upperDirectory: string | undefined;
  readonly createdAt: number;
}

/** A container as the agent holds it: its row has the number of its slot. */
interface HeldContainer extends Omit<KnownContainer, "slot"> {
  readonly slot: { readonly number: number };
}

export interface ContainerStore {
  /** Adds a container before its start, with process id 0. */
  add(container: HeldContainer): void;
  /** Records that it was started and, if its memory was restored, that the restore is complete. */
  started(container: Pick<HeldContainer, "id" | "pid" | "upperDirectory">): void;
  /** Records another size: usage samples, the heartbeat and the next agent process read it here. */
  resize(id: string, size: Pick<Resources, "cpuCount" | "memoryMB">): void;
  remove(id: string): void;
  /** @throws {AppError} internal when the key differs from the one that sealed the rows */
  all(): KnownContainer[];
}

interface Row {
  id: string;
  slot: number;
  pid: number;
  /** Sealed, because its holder may initialise the sandbox again. */
  control_token: string;
  template_id: string;
  build_id: string;
  image: string;
  cpu_count: number;
  memory_mb: number;
  disk_size_mb: number;
  runtime: string;
  upper_directory: string | null;
  created_at: number;
}

export function containerStore(database: Sqlite, sealing: Seal): ContainerStore {
  const insert = database.prepare<Row>(`insert into containers values (
    @id, @slot, @pid, @control_token, @template_id, @build_id, @image, @cpu_count, @memory_mb, @disk_size_mb,
    @runtime, @upper_directory, @created_at)`);
  const started = database.prepare<[number, string | null, string]>(
    "update containers set pid = ?, upper_directory = ? where id = ?",
  );
  const resize = database.prepare<[number, number, string]>(
    "update containers set cpu_count = ?, memory_mb = ? where id = ?",
  );
  const remove = database.prepare<[string]>("delete from containers where id = ?");
  const all = database.prepare<[], Row>("select * from containers");
  return {
    add({ id, slot, pid, controlToken, build, resources, runtime, upperDirectory, createdAt }) {
      insert.run({
        id,
        slot: slot.number,
        pid,
        control_token: sealing.close(controlToken, controlContext(id)),
        template_id: build.templateId,
        build_id: build.buildId,
        image: build.image,
        cpu_count: resources.cpuCount,
        memory_mb: resources.memoryMB,
        disk_size_mb: resources.diskSizeMB,
        runtime,
        upper_directory: upperDirectory ?? null,
        created_at: createdAt,
      });
    },
    started: ({ id, pid, upperDirectory }) => void started.run(pid, upperDirectory ?? null, id),
    resize: (id, { cpuCount, memoryMB }) => void resize.run(cpuCount, memoryMB, id),
    remove: (id) => void remove.run(id),
    all: () => all.all().map((row) => toContainer(row, sealing)),
  };
}

function toContainer(row: Row, sealing: Seal): KnownContainer {
  return {
    id: row.id,
    slot: row.slot,
    pid: row.pid,
    controlToken: sealing.open(row.control_token, controlContext(row.id)),
    build: { templateId: row.template_id, buildId: row.build_id, image: row.image },
    resources: { cpuCount: row.cpu_count, memoryMB: row.memory_mb, diskSizeMB: row.disk_size_mb },
    runtime: row.runtime,
    upperDirectory: row.upper_directory ?? undefined,
    createdAt: row.created_at,
  };
}
