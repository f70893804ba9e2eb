/** Events of the project: those of the past, and those to come. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Api, Item } from "../../api/client.ts";
import { readEvents, type SentEvent } from "../../api/event-stream.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure } from "../../failure.ts";
import type { Options } from "../../options.ts";
import { escapeLine, escapeQuoted } from "../../output/escape.ts";
import type { View } from "../../output/output.ts";
import { limitOf } from "../../output/watch.ts";
import { shortType, wholeType } from "./event-types.ts";

type Event = Item<"GET /events">;

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
  if (options.follow === true) return follow(context, api, options);
  const { most, told } = limitOf(context, options);
  const past = told(await pastOf(api, options, most));
  if (options.output === "json") for (const event of past) await asJson(context, event);
  else await context.out.list(eventView, past, options);
};

async function pastOf(api: Api, options: Options, most: number): Promise<readonly Event[]> {
  const newest = await api.all("GET /events", { query: { ...filters(options), order: "desc" } }, most);
  return newest.toReversed();
}

function filters({ sandbox, type, since }: Options) {
  return {
    ...(sandbox === undefined ? {} : { sandboxID: sandbox }),
    ...(type === undefined ? {} : { type: type.split(",").map(wholeType).join(",") }),
    ...(since === undefined ? {} : { from: Math.floor(Date.now() / 1000) - since }),
  };
}

/**
 * Ends when the user ends it. The stream is opened before the past is read, so that no event falls between the two; after a cut it goes
 * on behind the last event that came, and where none has come yet, the past is read again.
 */
async function follow(context: Context, api: Api, options: Options): Promise<never> {
  const { most } = limitOf(context, options);
  const shown = new Set<string>();
  let last: string | undefined;
  let isOpen = false;
  const show = async (event: Event) => {
    if (shown.has(event.id)) return;
    if (last === undefined) shown.add(event.id);
    await (options.output === "json" ? asJson(context, event) : asLine(context, event));
  };
  for (;;) {
    try {
      const coming = await open(api, options, last);
      if (last === undefined) for (const event of await pastOf(api, options, most)) await show(event);
      isOpen = true;
      for await (const { id, data } of coming) {
        await show(JSON.parse(data) as Event);
        last = id ?? last;
      }
    } catch (error) {
      const isRefused = error instanceof Failure && error.exitCode !== EXIT.failed;
      if (context.signal.aborted || !isOpen || isRefused) throw error;
      context.out.note("the stream of events was cut: trying again");
    }
    await sleep(AGAIN_MS, undefined, { signal: context.signal });
  }
}

async function open(api: Api, options: Options, last: string | undefined): Promise<AsyncIterable<SentEvent>> {
  const { from: _, ...query } = filters(options) as { from?: number };
  const behind = last === undefined ? {} : { "last-event-id": last };
  const { body } = await api.stream("GET /events", { query }, { accept: "text/event-stream", ...behind });
  return readEvents(body as unknown as AsyncIterable<Uint8Array>);
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
