/** Handlers of the audit log: pages for a project and for operators, and the check of the chain. */

import type { Static } from "typebox";
import type { AuditEntry, adminAuditApi, auditApi } from "../../shared/api/audit.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { iso } from "../forms/time.ts";
import type { AuditFilter, AuditStore } from "../store/audit/audit.ts";
import type { AuditRow } from "../store/audit/row.ts";
import type { ProjectStore } from "../store/projects/projects.ts";
import type { Project } from "../store/projects/record.ts";
import type { AuditWriter } from "./writer.ts";

export interface AuditHandlersDeps {
  readonly store: Pick<AuditStore, "list" | "check">;
  readonly projects: Pick<ProjectStore, "find">;
  readonly writer: Pick<AuditWriter, "flush">;
}

type Query = Static<typeof auditApi.listAudit.query>;
type SetHeader = (name: string, value: string) => void;

export function createAuditHandlers(deps: AuditHandlersDeps): {
  readonly audit: Handlers<typeof auditApi, Project>;
  readonly adminAudit: Handlers<typeof adminAuditApi>;
} {
  const { store, projects, writer } = deps;

  async function list(query: Query, projectId: string | undefined, header: SetHeader): Promise<AuditRow[]> {
    await writer.flush();
    const after = fromToken(query.nextToken);
    const { rows, next } = await store.list(filterOf(query, projectId), {
      ascending: query.order === "asc",
      limit: query.limit ?? 100,
      ...defined({ after }),
    });
    if (next !== undefined) header("x-next-token", toToken(next));
    return rows;
  }

  async function projectId(reference: string | undefined): Promise<string | undefined> {
    if (reference === undefined) return undefined;
    const found = await projects.find(reference);
    if (found === undefined) throw new AppError("not_found", `project '${reference}' not found`);
    return found.id;
  }

  return {
    audit: {
      listAudit: async ({ query }, { caller, header }) => {
        const rows = await list(query, caller.id, header);
        return rows.map((row) => withoutOperators(toShown(row)));
      },
    },
    adminAudit: {
      listAllAudit: async ({ query }, { header }) =>
        (await list(query, await projectId(query.teamID), header)).map(toShown),
      verifyAudit: async ({ query: { seq, hash } }, { signal }) => {
        if ((seq === undefined) !== (hash === undefined)) {
          throw new AppError("bad_request", "query fields 'seq' and 'hash' belong together");
        }
        await writer.flush();
        const known = seq === undefined || hash === undefined ? {} : { known: { seq, hash } };
        const { broken, ...checked } = await store.check({ ...known, signal });
        return { whole: broken === undefined, ...checked, broken: broken ?? null };
      },
    },
  };
}

function filterOf(query: Query, projectId: string | undefined): AuditFilter {
  const { actor, actorKind, action, object, objectKind, result, requestID, start, end } = query;
  return Object.fromEntries(
    Object.entries({
      projectId,
      actorId: actor,
      actorKind,
      action,
      objectId: object,
      objectKind,
      result,
      requestId: requestID,
      from: start === undefined ? undefined : start * 1000,
      to: end === undefined ? undefined : end * 1000 + 999,
    } satisfies { readonly [Name in keyof AuditFilter]: AuditFilter[Name] | undefined }).filter(
      ([, value]) => value !== undefined,
    ),
  );
}

function toShown(row: AuditRow): AuditEntry {
  return {
    seq: row.seq,
    at: iso(row.at),
    projectID: row.project_id,
    actor: { kind: row.actor_kind, id: row.actor_id, mask: row.actor_mask },
    action: row.action,
    object: { kind: row.object_kind, id: row.object_id },
    result: row.result,
    status: row.status,
    errorCode: row.error_code,
    address: row.address,
    requestID: row.request_id,
    refersTo: row.refers_to,
    details: row.details === null ? {} : (JSON.parse(row.details) as object),
    previousHash: row.previous_hash,
    hash: row.hash,
  };
}

/** Members of a project learn that an operator or a node acted, not from where. */
function withoutOperators(entry: AuditEntry): AuditEntry {
  return entry.actor.kind === "admin" || entry.actor.kind === "node" ? { ...entry, address: null } : entry;
}

/** A position in the log, not an entry, so it stays valid when that entry is deleted. */
function toToken(seq: number): string {
  return Buffer.from(`seq__${seq}`).toString("base64url");
}

function fromToken(token: string | undefined): number | undefined {
  if (token === undefined || token === "") return undefined;
  const seq = /^seq__(\d{1,15})$/.exec(Buffer.from(token, "base64url").toString("utf8"))?.[1];
  if (seq === undefined) throw new AppError("bad_request", "Invalid next token");
  return Number(seq);
}
