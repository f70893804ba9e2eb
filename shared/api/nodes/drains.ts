/** Routes for operators: the drain of a node, which moves its sandboxes to other nodes, and how far it is. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { nullable, Timestamp } from "../common.ts";
import { NodeContents } from "./nodes.ts";

const MOST_AT_ONCE = 32;

const running = Type.Enum(["move", "finish"], {
  description:
    "Running sandboxes: `move` (default) pauses each with its memory and resumes it on another node; `finish` lets them run until their end",
});
const atDeadline = Type.Enum(["stay", "kill"], {
  description: "Sandboxes that still run there at the deadline: `stay` (default) leaves them; `kill` ends them",
});

export const DrainState = Type.Enum(["draining", "done", "overdue", "stopped"], {
  description:
    "`done`: nothing runs there, and what is paused is in the blob store; `overdue`: something is left after the deadline; `stopped`: the node is ready again",
});
export type DrainState = Static<typeof DrainState>;

export const DrainedState = Type.Enum(["waiting", "moving", "moved", "stored", "stays", "ended", "killed"], {
  description:
    "`stored`: paused, and in the blob store; `stays`: where it was, `reason` says why, and it is tried again; `killed`: at the deadline",
});
export type DrainedState = Static<typeof DrainedState>;

const Drained = Type.Object({
  sandboxID: Type.String(),
  was: Type.Enum(["running", "paused"]),
  state: DrainedState,
  toNodeID: nullable(Type.String()),
  reason: nullable(Type.String({ description: "Why it is not on another node (yet), or does not run there" })),
  stallMs: nullable(Type.Integer({ description: "From the beginning of its pause until it ran again" })),
  at: nullable(Timestamp),
});

const Drain = Type.Object({
  nodeID: Type.String(),
  state: DrainState,
  begunAt: Timestamp,
  deadlineAt: nullable(Timestamp),
  endedAt: nullable(Timestamp),
  running: Type.Enum(["move", "finish"]),
  atDeadline: Type.Enum(["stay", "kill"]),
  atOnce: Type.Integer(),
  sandboxes: Type.Array(Drained, { description: "Those on the node, and those that this drain has moved" }),
  left: NodeContents,
});
export type Drain = Static<typeof Drain>;

const byNode = Type.Object({ nodeID: Type.String({ minLength: 1, maxLength: 64 }) });
const admin = { tag: "Admin", access: "admin" } as const;

export const drainApi = contract({
  drainNode: {
    ...admin,
    method: "POST",
    path: "/nodes/{nodeID}/drain",
    summary: "Drain a node: no new sandbox, and those there go to other nodes; repeating it changes how",
    params: byNode,
    body: Type.Object({
      deadlineSeconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 30 * 86_400, description: "From now on. Default: no deadline" }),
      ),
      running: Type.Optional(running),
      atDeadline: Type.Optional(atDeadline),
      atOnce: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: MOST_AT_ONCE,
          description: "Sandboxes on their way at a time. Default: 2",
        }),
      ),
    }),
    optionalBody: true,
    status: 202,
    reply: Drain,
    errors: [400, 401, 404, 409],
  },
  getDrain: {
    ...admin,
    method: "GET",
    path: "/nodes/{nodeID}/drain",
    summary: "How far the node's last drain is, with each sandbox; POST /nodes/{nodeID} with `ready` ends it",
    params: byNode,
    status: 200,
    reply: Drain,
    errors: [401, 404],
  },
});
