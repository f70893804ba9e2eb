/**
 * Records requests that change something. The entry is written with the request's first change; the end of a request
 * gets an entry of its own when the request makes several changes, fails after a change, is refused, or changes nothing.
 */

import type { FastifyRequest } from "fastify";
import type { Input, Route } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Around, Call } from "../../shared/http/serve.ts";
import { isUuid } from "../../shared/ids.ts";
import { type Caller, callerOf, runAs } from "../callers/caller.ts";
import type { NewEntry } from "../store/audit/append.ts";
import { type AuditPart, type AuditScope, runAudited } from "../store/audit/scope.ts";
import { type Action, actionOf, plainFields } from "./actions.ts";
import { ALL_STRANGERS, type Refusals } from "./refusals.ts";
import type { AuditWriter } from "./writer.ts";

export interface RecordingDeps {
  readonly writer: Pick<AuditWriter, "add">;
  readonly refusals: Refusals;
  readonly now: () => number;
}

export interface Recording extends Around {
  /** Writes how many refusals were left out in the minutes that have passed. */
  noteLeftOut(): void;
}

export function createRecording({ writer, refusals, now }: RecordingDeps): Recording {
  const records = new WeakMap<FastifyRequest, RequestRecord>();

  function recordOf(call: Call, input?: Input<Route>): RequestRecord | undefined {
    const action = actionOf(call.operation, call.route);
    if (action === undefined) return undefined;
    const { operation, route, request } = call;
    const given = plainFields(input?.body, action.fields);
    const facts = { operation, status: route.status, action, caller: callerOf(request), given, writer, refusals, now };
    return new RequestRecord(facts, request.params as Params);
  }

  return {
    async run(call, work) {
      const record = recordOf(call, call.input);
      const caller = callerOf(call.request);
      if (record === undefined) return runAs(caller, work);
      records.set(call.request, record);
      try {
        const result = await runAs(caller, () => runAudited(record, work));
        record.succeed(call.reply.statusCode, result);
        return result;
      } finally {
        record.underWay = false;
      }
    },

    failed(call, reason) {
      const record = records.get(call.request) ?? recordOf(call);
      if (record === undefined) return;
      record.fail(reason);
    },

    noteLeftOut() {
      for (const { who, count } of refusals.takeLeftOut()) writer.add(leftOut(who, count, now()));
    },
  };
}

interface End {
  readonly result: "done" | "refused" | "failed";
  readonly status: number;
  readonly errorCode?: string;
  readonly answer?: unknown;
}

function endOf(reason: unknown): End {
  const { status, code } = AppError.from(reason);
  return { result: status < 500 ? "refused" : "failed", status, errorCode: code };
}

type Params = Readonly<Record<string, string | undefined>>;

/** Not the request itself: a connection or timer that work of the request has opened keeps its record for as long as it lives. */
interface RequestFacts {
  readonly operation: string;
  /** Of the answer when all goes well. */
  readonly status: number;
  readonly action: Action;
  readonly caller: Caller;
  /** What the log shows of the body. */
  readonly given: ReturnType<typeof plainFields>;
  readonly writer: RecordingDeps["writer"];
  readonly refusals: Refusals;
  readonly now: () => number;
}

/** What the log says about one request. */
class RequestRecord implements AuditScope {
  readonly caller: Caller;
  readonly table: string | undefined;
  underWay = true;
  seq: number | undefined;
  readonly #facts: RequestFacts;
  readonly #params: Params;
  #objectId: string | undefined;
  #projectId: string | undefined;

  constructor(facts: RequestFacts, params: Params) {
    const { action, caller } = facts;
    this.#facts = facts;
    this.#params = params;
    this.caller = caller;
    this.table = action.table;
    this.#objectId = action.param === undefined ? undefined : params[action.param]?.slice(0, 256);
    // Operators name the project in the path.
    const team = params["teamID"]?.toLowerCase();
    this.#projectId = caller.projectId ?? (team !== undefined && isUuid(team) ? team : undefined);
  }

  get owes(): boolean {
    return this.underWay && this.seq === undefined;
  }

  learn({ objectId, projectId }: { readonly objectId?: string; readonly projectId?: string }): void {
    this.#objectId ??= objectId;
    this.#projectId ??= this.table === "projects" ? objectId : projectId;
  }

  wrote(seq: number): void {
    this.seq = seq;
  }

  part(): AuditPart {
    return new PartRecord(this.#facts, this.#params);
  }

  succeed(status: number, answer?: unknown): void {
    this.#write({ result: "done", status, answer });
  }

  /** Of a caller's many refusals, which change nothing, only some are written. */
  fail(reason: unknown): void {
    const { refusals } = this.#facts;
    const { kind, keyId, personId, address } = this.caller;
    const identified = kind !== "open";
    const who = keyId ?? personId ?? (identified ? kind : address);
    if (this.seq === undefined && !refusals.admit(who, identified)) return;
    this.#write(endOf(reason));
  }

  #write(how: End): void {
    const end = this.#ended(how);
    if (end !== undefined) this.#facts.writer.add(end);
  }

  entry(): NewEntry {
    const { action } = this.#facts;
    return {
      ...this.#base(),
      result: action.steps === "several" ? "begun" : "done",
      details: this.#details(undefined),
    };
  }

  /** The entry about the end of the request; undefined: the entry of its change has said it all. */
  #ended({ result, status, errorCode, answer }: End): NewEntry | undefined {
    const { action } = this.#facts;
    if (result === "done" && this.seq !== undefined && action.steps !== "several") return undefined;
    return {
      ...this.#base(),
      result,
      status,
      error_code: errorCode ?? null,
      refers_to: this.seq ?? null,
      details: this.#details(answer),
    };
  }

  #base() {
    const { action, operation, caller, now } = this.#facts;
    return {
      at: now(),
      project_id: this.#projectId ?? null,
      actor_kind: caller.kind === "metrics" ? ("open" as const) : caller.kind,
      actor_id: caller.keyId ?? caller.personId ?? caller.nodeId ?? null,
      actor_mask: caller.mask ?? null,
      action: operation,
      object_kind: action.object,
      object_id: this.#objectId ?? null,
      status: null,
      error_code: null,
      address: caller.address,
      request_id: caller.requestId,
      refers_to: null,
    };
  }

  #details(answer: unknown): string | null {
    const { action, given } = this.#facts;
    const details = { ...given, ...plainFields(answer, action.shown) };
    return Object.keys(details).length === 0 ? null : JSON.stringify(details);
  }
}

/** The same of one of its parts. */
class PartRecord extends RequestRecord implements AuditPart {
  readonly #status: number;

  constructor(facts: RequestFacts, params: Params) {
    super(facts, params);
    this.#status = facts.status;
  }

  end(error?: unknown): void {
    this.underWay = false;
    if (error === undefined) this.succeed(this.#status);
    else this.fail(error);
  }
}

function leftOut(who: string, count: number, at: number): NewEntry {
  return {
    at,
    project_id: null,
    actor_kind: "platform",
    actor_id: null,
    actor_mask: null,
    action: "leaveOutRefusals",
    object_kind: "caller",
    object_id: who === ALL_STRANGERS ? null : who,
    result: "done",
    status: null,
    error_code: null,
    address: null,
    request_id: null,
    refers_to: null,
    details: JSON.stringify({ count }),
  };
}
