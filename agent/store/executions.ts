/**
 * Executions, stopped executions, and exits that the orchestrator has not acknowledged. The only SQL on those tables,
 * apart from migrations.
 */

import type { ExitReport } from "../../shared/agent-api/routes.ts";
import { defined } from "../../shared/defined.ts";
import type { EgressPolicy } from "../../shared/policy/egress-policy.ts";
import type { Seal } from "../../shared/program/sealing/seal.ts";
import { cleanDetail } from "../../shared/states/end-reason.ts";
import { egressContext, type Sqlite } from "./database/database.ts";

export interface Execution {
  readonly id: string;
  readonly sandboxId: string;
  /** The project that owns it; undefined: the start request named none. */
  readonly projectId: string | undefined;
  readonly containerId: string;
  readonly egress: EgressPolicy;
  readonly endAt: number;
  /** What the agent does at the timeout when the orchestrator is away. */
  readonly onTimeout: OnTimeout;
  readonly startedAt: number;
  readonly warm: boolean;
  readonly running: boolean;
  /** The orchestrator's row of the sandbox; undefined: it sent none. */
  readonly record?: string | undefined;
}

export interface OnTimeout {
  readonly does: "kill" | "pause";
  readonly memory: boolean;
}

export interface ExecutionStore {
  /** Called before the sandbox gets its identity, so that a crash from here on leaves a row. */
  add(execution: Execution): void;
  markRunning(id: string, startedAt: number): void;
  /** As `markRunning`, and records the stop of the former execution, in one transaction with `also`. */
  replace(id: string, startedAt: number, formerId: string, also: () => void): void;
  setEndAt(id: string, endAt: number): void;
  setEgress(id: string, egress: EgressPolicy): void;
  /** Removes a failed start, which may be tried again. */
  remove(id: string): void;
  /** Records a stop on request, so that a late start is refused. */
  stop(id: string, at: number): void;
  /**
   * Records, in one transaction, that the execution ended without a request and must be reported. `detail` is cleaned: it
   * may hold what came out of the sandbox, and the orchestrator refuses a report with a longer one.
   */
  exit(report: ExitReport): void;
  wasStopped(id: string): boolean;
  /** @throws {AppError} internal when the key differs from the one that sealed the rows */
  all(): Execution[];
  exits(): ExitReport[];
  acknowledge(ids: readonly string[]): void;
  /** Deletes stops and exits from before a time. */
  prune(before: number): void;
}

interface Row {
  id: string;
  sandbox_id: string;
  container_id: string;
  end_at: number;
  started_at: number;
  warm: number;
  running: number;
  on_timeout: OnTimeout["does"];
  on_timeout_memory: number;
  /** Sealed, because headers of its rules and the password of its proxy are secrets. */
  egress: string;
  project_id: string | null;
  record: string | null;
}

interface ExitRow {
  id: string;
  sandbox_id: string;
  reason: ExitReport["reason"];
  exit_code: number | null;
  at: number;
  detail: string | null;
}

export function executionStore(database: Sqlite, sealing: Seal): ExecutionStore {
  const insert = database.prepare<Row>(`insert into executions values (
    @id, @sandbox_id, @container_id, @end_at, @started_at, @warm, @running, @on_timeout,
    @on_timeout_memory, @egress, @project_id, @record)`);
  const markRunning = database.prepare<[number, string]>(
    "update executions set running = 1, started_at = ? where id = ?",
  );
  const setEndAt = database.prepare<[number, string]>("update executions set end_at = ? where id = ?");
  const setEgress = database.prepare<[string, string]>("update executions set egress = ? where id = ?");
  const remove = database.prepare<[string]>("delete from executions where id = ?");
  const remember = database.prepare<[string, number]>("insert into stopped values (?, ?) on conflict do nothing");
  const wasStopped = database.prepare<[string], { id: string }>("select id from stopped where id = ?");
  const all = database.prepare<[], Row>("select * from executions");
  const addExit = database.prepare<ExitRow>(`insert into exits values (
    @id, @sandbox_id, @reason, @exit_code, @at, @detail) on conflict do nothing`);
  const exits = database.prepare<[], ExitRow>("select * from exits order by at limit 1000");
  const acknowledge = database.prepare<[string]>("delete from exits where id = ?");
  const pruneStopped = database.prepare<[number]>("delete from stopped where at < ?");
  const pruneExits = database.prepare<[number]>("delete from exits where at < ?");

  const sealed = (id: string, egress: EgressPolicy) => sealing.close(JSON.stringify(egress), egressContext(id));

  return {
    add({ id, sandboxId, projectId, containerId, egress, endAt, onTimeout, startedAt, warm, running, record }) {
      insert.run({
        id,
        sandbox_id: sandboxId,
        container_id: containerId,
        end_at: endAt,
        started_at: startedAt,
        warm: Number(warm),
        running: Number(running),
        on_timeout: onTimeout.does,
        on_timeout_memory: Number(onTimeout.memory),
        egress: sealed(id, egress),
        project_id: projectId ?? null,
        record: record ?? null,
      });
    },
    markRunning: (id, startedAt) => void markRunning.run(startedAt, id),
    replace: database.transaction((id: string, startedAt: number, formerId: string, also: () => void) => {
      markRunning.run(startedAt, id);
      remove.run(formerId);
      remember.run(formerId, startedAt);
      also();
    }),
    setEndAt: (id, endAt) => void setEndAt.run(endAt, id),
    setEgress: (id, egress) => void setEgress.run(sealed(id, egress), id),
    remove: (id) => void remove.run(id),
    stop: database.transaction((id: string, at: number) => {
      remove.run(id);
      remember.run(id, at);
    }),
    exit: database.transaction(({ executionId, sandboxId, reason, exitCode, detail = "", at }: ExitReport) => {
      remove.run(executionId);
      remember.run(executionId, at);
      const more = { exit_code: exitCode ?? null, detail: cleanDetail(detail) ?? null };
      addExit.run({ id: executionId, sandbox_id: sandboxId, reason, at, ...more });
    }),
    wasStopped: (id) => wasStopped.get(id) !== undefined,
    all: () => all.all().map((row) => toExecution(row, sealing)),
    exits: () => exits.all().map(toExit),
    acknowledge: database.transaction((ids: readonly string[]) => {
      for (const id of ids) acknowledge.run(id);
    }),
    prune: database.transaction((before: number) => {
      pruneStopped.run(before);
      pruneExits.run(before);
    }),
  };
}

function toExecution(row: Row, sealing: Seal): Execution {
  return {
    id: row.id,
    sandboxId: row.sandbox_id,
    projectId: row.project_id ?? undefined,
    containerId: row.container_id,
    egress: JSON.parse(sealing.open(row.egress, egressContext(row.id))) as EgressPolicy,
    endAt: row.end_at,
    onTimeout: { does: row.on_timeout, memory: row.on_timeout_memory === 1 },
    startedAt: row.started_at,
    warm: row.warm === 1,
    running: row.running === 1,
    record: row.record ?? undefined,
  };
}

function toExit({ id, sandbox_id: sandboxId, reason, exit_code: exitCode, at, detail }: ExitRow): ExitReport {
  const more = defined({ exitCode: exitCode ?? undefined, detail: detail ?? undefined });
  return { executionId: id, sandboxId, reason, at, ...more };
}
