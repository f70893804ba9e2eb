/**
 * Ended sandboxes, which their project may read for a time: who may read which, and the error that a request for one
 * gets. Unknown sandboxes, those of other projects and forgotten ones get one and the same error, so that ids cannot be
 * probed.
 */

import { AppError } from "../../shared/http/errors.ts";
import { describeEnd } from "../../shared/states/end-reason.ts";
import { iso } from "../forms/time.ts";
import type { Project } from "../store/projects/record.ts";
import type { SandboxRecord } from "../store/sandboxes/record.ts";
import type { SandboxStore } from "../store/sandboxes/sandboxes.ts";
import { checkedId, notFound } from "./not-found.ts";
import { endedAtOf, shown } from "./record-state.ts";

type Owner = Pick<Project, "id">;

export interface History {
  /** Sandboxes that ended before this time cannot be read any more; unix milliseconds. */
  readableSince(): number;
  /** The 404 for a sandbox that the project asked for and that is not there; it names the reason of an end. */
  missing(project: Owner, id: string, record: SandboxRecord | undefined): AppError;
  /** A sandbox of the project that runs or is paused, or with `ended` has ended. @throws {AppError} bad_request, `missing` */
  find(project: Owner, reference: string, ended?: boolean): Promise<SandboxRecord>;
}

export interface HistoryDeps {
  readonly store: { readonly sandboxes: Pick<SandboxStore, "get"> };
  /** How long an ended sandbox can be read; 0: not at all. */
  readonly keepMs: number;
  readonly now: () => number;
}

export function createHistory({ store, keepMs, now }: HistoryDeps): History {
  function isReadable(record: SandboxRecord): boolean {
    const endedAt = endedAtOf(record);
    return endedAt !== undefined && keepMs > 0 && endedAt >= now() - keepMs;
  }

  function missing(project: Owner, id: string, record: SandboxRecord | undefined): AppError {
    if (record === undefined || record.projectId !== project.id || !isReadable(record)) return notFound(id);
    const { end } = record;
    const endedAt = endedAtOf(record) ?? now();
    const how = end === undefined ? "" : `: ${describeEnd(end)}`;
    const until = `its history can be read until ${iso(endedAt + keepMs)}, with ended=true`;
    return new AppError("sandbox_ended", `Sandbox "${id}" ended at ${iso(endedAt)}${how}; ${until}`);
  }

  return {
    readableSince: () => now() - keepMs,
    missing,
    async find(project, reference, ended = false) {
      const id = checkedId(reference);
      const record = await store.sandboxes.get(id);
      const mine = record !== undefined && record.projectId === project.id;
      if (mine && (shown(record) !== undefined || (ended && isReadable(record)))) return record;
      throw missing(project, id, record);
    },
  };
}
