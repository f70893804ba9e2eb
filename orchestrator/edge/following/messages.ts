/**
 * What an edge program and an orchestrator say to each other. The orchestrator's stream is JSON, one message a line: who it is,
 * every route, `whole`, and from then on each change; answers stand in the same stream, so that none overtakes a removal.
 * The edge says the rest by calls. Types and schemas only.
 */

import { type Static, Type } from "typebox";
import { contract } from "../../../shared/http/contract.ts";
import { SandboxState } from "../../../shared/states/sandbox-state.ts";

/** Time in which an edge may go by its routes alone, from the question that the orchestrator answered last. */
export const CURRENT_MS = 700;
/** How long the end of a sandbox waits for an edge: longer than that edge could go by its routes alone. */
export const ACKNOWLEDGE_MS = 1_000;

const text = Type.String();

const NodeLine = Type.Object({
  is: Type.Literal("node"),
  nodeId: text,
  proxyUrl: text,
  /** Absent: not known. */
  machineId: Type.Optional(text),
  /** What the edge sends to the node's proxy. */
  token: text,
});
export type NodeLine = Static<typeof NodeLine>;

const RouteLine = Type.Object({
  is: Type.Literal("route"),
  sandboxId: text,
  executionId: text,
  state: SandboxState,
  held: Type.Boolean(),
  nodeId: text,
  address: text,
  envdAccessToken: text,
  trafficAccessToken: Type.Optional(text),
  allowPublicTraffic: Type.Boolean(),
  maskRequestHost: Type.Optional(text),
  httpsPorts: Type.Array(Type.Integer()),
});
export type RouteLine = Static<typeof RouteLine>;

const RemovalReason = Type.Enum(["killed", "paused", "lost"]);

const Result = Type.Union([
  /** Its route stands before this line. */
  Type.Object({ is: Type.Literal("running") }),
  Type.Object({ is: Type.Literal("not_found") }),
  /** `moving`: a drain starts it again; an older orchestrator does not say so. */
  Type.Object({ is: Type.Literal("paused"), moving: Type.Optional(Type.Boolean()) }),
  Type.Object({ is: Type.Literal("denied"), message: text }),
  Type.Object({ is: Type.Literal("transitioning") }),
  Type.Object({ is: Type.Literal("limited"), message: text }),
  Type.Object({
    is: Type.Literal("list"),
    sandboxes: Type.Array(Type.Object({ sandboxId: text, envdAccessToken: text })),
  }),
  /** The orchestrator's log has the reason. */
  Type.Object({ is: Type.Literal("failed") }),
]);
export type Result = Static<typeof Result>;

/** A line of the orchestrator's stream. */
export const Line = Type.Union([
  Type.Object({
    is: Type.Literal("hello"),
    /** Names this stream in the edge's calls. */
    followerId: text,
    /** Whether the edge may dial containers of its own machine: no other orchestrator ends sandboxes. */
    straight: Type.Boolean(),
    docsUrl: Type.Optional(text),
  }),
  NodeLine,
  RouteLine,
  /** Every route has been sent. */
  Type.Object({ is: Type.Literal("whole") }),
  /** The edge says `done` with the number when the streams of the execution have ended. */
  Type.Object({
    is: Type.Literal("removed"),
    number: Type.Integer(),
    sandboxId: text,
    executionId: text,
    reason: RemovalReason,
  }),
  Type.Object({ is: Type.Literal("answer"), number: Type.Integer(), result: Result }),
  /** To `ping`. */
  Type.Object({ is: Type.Literal("pong"), number: Type.Integer() }),
]);
export type Line = Static<typeof Line>;

const number = Type.Integer({ minimum: 0 });
const id = Type.String({ maxLength: 64 });
/** As long as a head may be. */
const given = Type.String({ maxLength: 262_144 });

const Tokens = Type.Object({
  trafficAccessTokens: Type.Optional(Type.Array(given, { maxItems: 1000 })),
  envdAccessToken: Type.Optional(given),
  signed: Type.Optional(
    Type.Object({
      signature: given,
      path: given,
      operation: Type.Enum(["read", "write"]),
      username: given,
      expiration: Type.Optional(given),
    }),
  ),
  apiKey: Type.Optional(given),
});

const Said = Type.Union([
  Type.Object({ is: Type.Literal("ping"), number }),
  /** The streams of a removed route have ended. */
  Type.Object({ is: Type.Literal("done"), number }),
  /** Finds a sandbox that the edge does not know, and resumes it where its policy allows it. */
  Type.Object({ is: Type.Literal("wake"), number, sandboxId: id, port: Type.Integer(), tokens: Tokens }),
  /** Where a sandbox is, without resuming it. */
  Type.Object({ is: Type.Literal("find"), number, sandboxId: id }),
  /** Lists the paused sandboxes that a signed URL may name. */
  Type.Object({ is: Type.Literal("list"), number }),
  /** The edge stops: nothing waits for it any more. */
  Type.Object({ is: Type.Literal("leave") }),
]);
export type Said = Static<typeof Said>;

export const edgeApi = contract({
  follow: {
    method: "GET",
    path: "/internal/edge/routes",
    summary: "Every route to a running sandbox, then each change",
    tag: "Edge",
    access: "node",
    noStore: true,
    status: 200,
    stream: "application/x-ndjson",
    errors: [401, 403],
  },
  say: {
    method: "POST",
    path: "/internal/edge/routes/{followerId}",
    summary: "What an edge says to the orchestrator that it follows; answers come in the stream",
    tag: "Edge",
    access: "node",
    noStore: true,
    params: Type.Object({ followerId: id }),
    body: Type.Object({ said: Type.Array(Said, { maxItems: 10_000 }) }),
    status: 204,
    errors: [400, 401, 403, 404],
  },
});
