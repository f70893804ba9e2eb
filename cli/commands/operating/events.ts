/** Events of the project: those of the past, and those to come. */

import { setTimeout as sleep } from "node:timers/promises";
import { type Api, type Item } from "../../api/client.ts";
import { readEvents } from "../../api/event-stream.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure } from "../../failure.ts";
import type { Options } from "../../options.ts";
import { escapeLine, escapeQuoted } from "../../output/escape.ts";
import type { View } from "../../output/output.ts";
import { shortType, wholeType } from "./event-types.ts";

type Event = Item<"GET /events">;

const DEFAULT_LIMIT = 100;
const AGAIN_MS = 1_000;
const TIME_WIDTH = 26;
const TYPE_WIDTH = 16;

export const eventView: View<Event> = {
  name: ({ id }) => `event/${id}`,
  columns: [
    { title: "TIME", of: ({ timestamp }) => timestamp },
    { title: "EVENT", of: ({ type }) => shortType(type) },
    { title: "SANDBOX", of: ({ sandboxId }) => sandboxId ?? "" },
    { title: "WHAT", of: whatOf },
    { title: "TEMPLATE", of: ({ sandboxTemplateId }) => sandboxTemplateId ?? "", wide: true },
    { title: "ID", of: ({ id }) => id, wide: true },
  ],
};

/** What the event's own data tells in few words. */
export function whatOf({ eventData }: Pick<Event, "eventData">): string {
  const data = (eventData ?? {}) as Readonly<Record<string, unknown>>;
  const words = ["kill_reason", "reason", "detail", "exit_code", "set_timeout", "snapshot_id", "restored"]
    .filter((name) => data[name] !== undefined && data[name] !== null)
    .filter((name) => name !== "reason" || data["kill_reason"] === undefined)
    .map((name) => `${name}=${typeof data[name] === "string" ? data[name] : JSON.stringify(data[name])}`);
  return words.join(" ");
}

export const events: Action = async (context, _args, options) => {
  const api = await context.api();
  const query = filters(options);
  const past = await api.all("GET /events", { query: { ...query, order: "desc" } }, options.limit ?? DEFAULT_LIMIT);
  const oldest = past.toReversed();
  if (options.output === "json") for (const event of oldest) await asJson(context, event);
  else if (options.follow === true) for (const event of oldest) await asLine(context, event);
  else await context.out.list(eventView, oldest, options);
  if (options.follow === true) await follow(context, api, options);
};

function filters({ sandbox, type, since }: Options) {
  return {
    ...(sandbox === undefined ? {} : { sandboxID: sandbox }),
    ...(type === undefined ? {} : { type: type.split(",").map(wholeType).join(",") }),
    ...(since === undefined ? {} : { from: Math.floor(Date.now() / 1000) - since }),
  };
}

/** The stream ends when the user ends it. After a cut it goes on behind the last event that came. */
async function follow(context: Context, api: Api, options: Options): Promise<void> {
  const { from: _, ...query } = filters(options) as { from?: number };
  let last: string | undefined;
  let isFirst = true;
  for (;;) {
    try {
      const response = await api.stream(
        "GET /events",
        { query },
        {
          accept: "text/event-stream",
          ...(last === undefined ? {} : { "last-event-id": last }),
        },
      );
      isFirst = false;
      for await (const { id, data } of readEvents(response.body as unknown as AsyncIterable<Uint8Array>)) {
        last = id ?? last;
        const event = JSON.parse(data) as Event;
        await (options.output === "json" ? asJson(context, event) : asLine(context, event));
      }
    } catch (error) {
      const isRefused = error instanceof Failure && error.exitCode !== EXIT.failed;
      if (context.signal.aborted || isFirst || isRefused) throw error;
      context.out.note("the stream of events was cut: trying again");
    }
    await sleep(AGAIN_MS, undefined, { signal: context.signal });
  }
}

async function asJson({ out }: Context, event: Event): Promise<void> {
  await out.bytes(Buffer.from(`${escapeQuoted(JSON.stringify(event))}\n`));
}

async function asLine({ out }: Context, event: Event): Promise<void> {
  const time = escapeLine(event.timestamp).padEnd(TIME_WIDTH);
  await out.line(
    `${time} ${shortType(event.type).padEnd(TYPE_WIDTH)} ${event.sandboxId ?? "-"}  ${whatOf(event)}`.trimEnd(),
  );
}
