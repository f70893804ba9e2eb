/** Handlers of events: lists, and the live stream of a project. */

import { EVENT_NAMES, type eventApi } from "../../shared/api/events.ts";
import { defined } from "../../shared/defined.ts";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import { checkedId } from "../lifecycle/not-found.ts";
import type { EventFilter } from "../store/events/events.ts";
import type { Project } from "../store/projects/record.ts";
import type { Store } from "../store/store.ts";
import { fromToken, readSequence, toToken } from "./cursor.ts";
import type { EventStreams } from "./streams.ts";
import { toEvent, toSandboxEvent } from "./view.ts";

export interface EventHandlersDeps {
  readonly store: Store;
  readonly streams: EventStreams;
  /** How long events are kept. */
  readonly historyMs: number;
  readonly now: () => number;
}

interface Query {
  readonly type?: string;
  readonly sandboxID?: string;
  readonly template?: string;
  readonly from?: number;
  readonly to?: number;
}

interface OffsetQuery {
  readonly offset?: number;
  readonly limit?: number;
  readonly orderAsc?: boolean;
}

export function createEventHandlers(deps: EventHandlersDeps): Handlers<typeof eventApi, Project> {
  const { store, streams } = deps;

  const list = async (caller: Project, query: OffsetQuery, sandboxId?: string) => {
    const page = { offset: query.offset ?? 0, limit: query.limit ?? 10, ascending: query.orderAsc ?? false };
    const rows = await store.events.list(caller.id, { ...page, ...defined({ sandboxId }) });
    return rows.map(toSandboxEvent);
  };

  /** Where a stream continues: behind the event that its client saw last. Undefined: a new stream. */
  function resumption(given: string | undefined, token: string): number | undefined {
    // A client that has seen no event may say so: the id is the empty text then.
    const header = given === "" ? undefined : given;
    const after = header === undefined ? undefined : readSequence(header);
    if (header !== undefined && after === undefined) {
      throw new AppError("bad_request", "header 'Last-Event-ID' must be the id of an event of this stream");
    }
    const place = after ?? (token === "" ? undefined : fromToken(token));
    // The order of events is made of microseconds, so it says when an event was.
    if (place !== undefined && place / 1000 < deps.now() - deps.historyMs) {
      throw new AppError("bad_request", "the stream cannot be resumed: later events are not kept any more");
    }
    return place;
  }

  return {
    async listAllEvents({ query }, { caller, header, requestHeader }) {
      const filter = filterOf(query);
      const { limit = 100, nextToken = "", order = "desc" } = query;
      if (acceptsStream(requestHeader("accept"))) {
        const after = resumption(requestHeader("last-event-id"), nextToken);
        header("cache-control", "no-store");
        header("x-accel-buffering", "no");
        return streams.open(caller.id, filter, after);
      }
      const after = nextToken === "" ? {} : { after: fromToken(nextToken) };
      const page = { limit: limit + 1, ascending: order === "asc", ...after };
      const rows = await store.events.read(caller.id, filter, page);
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      if (last !== undefined && rows.length > limit) header("x-next-token", toToken(last.sequence));
      return shown.map(toEvent);
    },
    listEvents: ({ query }, { caller }) => list(caller, query),
    listSandboxEvents: ({ params, query }, { caller }) => list(caller, query, checkedId(params.sandboxID)),
  };
}

function filterOf({ type, sandboxID, template, from, to }: Query): EventFilter {
  return {
    ...(type === undefined ? {} : { types: typesOf(type) }),
    ...(sandboxID === undefined ? {} : { sandboxId: checkedId(sandboxID) }),
    ...defined({ templateId: template }),
    ...(from === undefined ? {} : { from: from * 1000 }),
    // The requested second counts to its end.
    ...(to === undefined ? {} : { before: (to + 1) * 1000 }),
  };
}

function typesOf(text: string): string[] {
  const types = text.split(",").map((type) => type.trim());
  const unknown = types.find((type) => !(EVENT_NAMES as readonly string[]).includes(type));
  if (unknown === undefined) return types;
  const found = JSON.stringify(unknown.slice(0, 128));
  throw new AppError("bad_request", `query field 'type' must be of ${EVENT_NAMES.join(", ")}, and has ${found}`);
}

function acceptsStream(accept = ""): boolean {
  return accept.split(",").some((type) => type.split(";")[0]?.trim().toLowerCase() === "text/event-stream");
}
