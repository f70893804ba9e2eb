/** One sandbox in depth: its state, why, since when, where, what ends it next, and its last events. */

import type { Api, Item, Reply } from "../../api/client.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { Failure } from "../../failure.ts";
import { age, duration } from "../../output/time.ts";
import { shortType } from "../operating/event-types.ts";
import { eventView, whatOf } from "../operating/events.ts";

type Detail = Reply<"GET /sandboxes/{sandboxID}">;
type Event = Item<"GET /events">;
type Placed = Item<"GET /admin/sandboxes">;
type NodeEvent = NonNullable<Reply<"GET /nodes/{nodeID}">["events"]>[number];

const LAST_EVENTS = 10;

interface Explanation {
  readonly sandboxID: string;
  readonly state: string;
  readonly why: string;
  readonly since: string | null;
  /** Null: only operators see nodes. */
  readonly nodeID: string | null;
  /** What happened to the node last. */
  readonly nodeEvent: NodeEvent | null;
  readonly next: string;
  readonly lastEvents: readonly Event[];
}

export const explain: Action = async (context, { first: sandboxID }, options) => {
  const api = await context.api();
  const detail = await api.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query: { ended: true } });
  const query = { sandboxID, order: "desc" as const, limit: LAST_EVENTS };
  const newest = await api.call("GET /events", { query });
  const placed = await placeOf(context, sandboxID);
  const { adminToken } = await context.settings();
  const explanation: Explanation = {
    sandboxID,
    state: placed?.state ?? detail.state,
    ...why(detail, newest),
    nodeID: placed?.nodeID ?? null,
    nodeEvent: placed === undefined ? null : await lastOfNode(context, placed.nodeID),
    next: nextOf(detail),
    lastEvents: newest.toReversed(),
  };
  if (await context.out.structured(explanation, options)) return;
  await context.out.one(
    {
      name: () => `sandbox/${sandboxID}`,
      columns: [
        { title: "SANDBOX", of: () => sandboxID },
        { title: "STATE", of: ({ state }) => state, state: true },
        { title: "WHY", of: (it) => it.why },
        { title: "SINCE", of: ({ since }) => (since === null ? "" : `${since} (${age(since)} ago)`) },
        { title: "NODE", of: (it) => nodeOf(it) ?? (adminToken === undefined ? "(only operators see nodes)" : "") },
        { title: "NEXT", of: ({ next }) => next },
      ],
    },
    explanation,
    options,
  );
  await context.out.line("");
  await context.out.list(eventView, explanation.lastEvents, options);
};

/** The newest event that made the state what it is. */
const CAUSES: Readonly<Record<Detail["state"], readonly string[]>> = {
  running: ["created", "resumed", "rewound"],
  paused: ["paused", "held"],
  ended: ["killed"],
};

function why(detail: Detail, newest: readonly Event[]): Pick<Explanation, "why" | "since"> {
  const { state, startedAt, endedAt, endReason, endDetail, exitCode } = detail;
  if (state === "ended") {
    const code = exitCode === undefined ? "" : `, exit code ${exitCode}`;
    return {
      why: `${endReason ?? "its end has no reason"}${code}${endDetail === undefined ? "" : `: ${endDetail}`}`,
      since: endedAt ?? null,
    };
  }
  const cause = newest.find(({ type }) => CAUSES[state].includes(shortType(type)));
  if (cause === undefined)
    return {
      why: `it ${state === "running" ? "was started" : "was paused"}`,
      since: state === "running" ? startedAt : null,
    };
  const words = whatOf(cause);
  return { why: `${shortType(cause.type)}${words === "" ? "" : `, ${words}`}`, since: cause.timestamp };
}

function nextOf({ state, endAt, lifecycle, endedAt }: Detail): string {
  const left = Date.parse(endAt) - Date.now();
  const auto = lifecycle?.autoResume === true ? "a request to it resumes it, too" : "requests do not resume it";
  switch (state) {
    case "ended":
      return `nothing: it ended ${age(endedAt)} ago, and only its history is left`;
    case "paused":
      return `it waits for \`svc sandbox resume\`; ${auto}`;
    case "running": {
      const what = lifecycle?.onTimeout === "pause" ? "it is paused" : "it ends";
      return left <= 0
        ? `${what} now: its time is over`
        : `${what} in ${duration(left)}, at ${endAt}, unless its timeout is set anew`;
    }
  }
}

function nodeOf({ nodeID, nodeEvent }: Explanation): string | null {
  if (nodeID === null || nodeEvent === null) return nodeID;
  return `${nodeID} (${nodeEvent.kind.replaceAll("_", " ")} ${age(nodeEvent.at)} ago)`;
}

/** Null where that is not known: of a node that was removed, and at an orchestrator of an earlier version. */
async function lastOfNode(context: Context, nodeID: string): Promise<NodeEvent | null> {
  try {
    const admin: Api = await context.admin();
    const { events } = await admin.call("GET /nodes/{nodeID}", { params: { nodeID }, query: {} });
    return events?.[0] ?? null;
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

/** Undefined without the operators' token, or when the sandbox is not among the newest that they see. */
async function placeOf(context: Context, sandboxID: string): Promise<Placed | undefined> {
  const { adminToken } = await context.settings();
  if (adminToken === undefined) return undefined;
  try {
    const admin: Api = await context.admin();
    const all = await admin.all("GET /admin/sandboxes", { query: {} });
    return all.find((one) => one.sandboxID === sandboxID);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
