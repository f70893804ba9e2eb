/** The edge programs that follow this orchestrator's routes, and the answers to what they ask. */

import { randomUUID } from "node:crypto";
import type { Handlers } from "../../shared/http/contract.ts";
import { AppError } from "../../shared/http/errors.ts";
import type { Log } from "../../shared/program/log.ts";
import { loop } from "../../shared/program/loop.ts";
import type { EdgeVisitor } from "../access/auth.ts";
import type { edgeApi, NodeLine, Result, Said } from "../edge/following/messages.ts";
import type { AutoResume, EdgeRoute, FindSandbox, PausedSandbox, VisitorTokens } from "../edge/sandbox-lookup.ts";
import type { RoutingTable } from "../nodes/routing-table.ts";
import { FollowerStream } from "./follower-stream.ts";

export interface FollowersDeps {
  readonly routes: Pick<RoutingTable, "running" | "lookup" | "onPut" | "onRemove">;
  readonly nodeOf: (nodeId: string) => NodeLine | undefined;
  readonly autoResume: AutoResume;
  readonly pausedSandboxes: () => Promise<readonly PausedSandbox[]>;
  readonly find: FindSandbox;
  /** No other orchestrator ends sandboxes. */
  readonly alone: boolean;
  readonly docsUrl: string | undefined;
  readonly log: Log;
  readonly acknowledgeMs?: number;
  readonly mostWaiting?: number;
  readonly lookEveryMs?: number;
}

/** How long an edge that was removed may still get routes. */
const LOOK_EVERY_MS = 2_000;

export interface Followers {
  readonly handlers: Handlers<typeof edgeApi, EdgeVisitor>;
  readonly size: number;
  /** Ends every stream: the edges try the next orchestrator, or this one again. */
  stop(): Promise<void>;
}

export function createFollowers(deps: FollowersDeps): Followers {
  const { routes, log } = deps;
  const streams = new Map<string, FollowerStream>();
  const members = new Map<FollowerStream, () => Promise<boolean>>();
  let isStopping = false;

  const forget = [
    routes.onPut((route: EdgeRoute) => {
      for (const stream of streams.values()) stream.put(route);
    }),
    routes.onRemove(async (executionId, sandboxId, reason = "killed") => {
      const waiting: Promise<void>[] = [];
      for (const [followerId, stream] of streams) {
        if (stream.counts) waiting.push(stream.removed(sandboxId, executionId, reason));
        else streams.delete(followerId);
      }
      await Promise.all(waiting);
    }),
  ];

  const looking = loop({ name: "edges", everyMs: deps.lookEveryMs ?? LOOK_EVERY_MS, log }, async () => {
    for (const [stream, isMember] of members) if (!(await isMember())) stream.cut("the edge was removed");
  });

  function open({ name: edge, isMember }: EdgeVisitor): FollowerStream {
    const followerId = randomUUID();
    const { docsUrl, alone: straight, nodeOf, acknowledgeMs, mostWaiting } = deps;
    const stream = new FollowerStream({
      routes,
      nodeOf,
      hello: { is: "hello", followerId, straight, ...(docsUrl === undefined ? {} : { docsUrl }) },
      onCut: (reason) => log.warn({ edge, followerId, reason }, "cut an edge off from the routes"),
      ...(acknowledgeMs === undefined ? {} : { acknowledgeMs }),
      ...(mostWaiting === undefined ? {} : { mostWaiting }),
    });
    for (const [id, known] of streams) if (!known.counts) streams.delete(id);
    streams.set(followerId, stream);
    if (isMember !== undefined) members.set(stream, isMember);
    stream.readable.once("close", () => {
      members.delete(stream);
      log.info({ edge, followerId }, "an edge does not follow the routes any more");
    });
    log.info({ edge, followerId }, "an edge follows the routes");
    return stream;
  }

  function hear(stream: FollowerStream, said: Said): void {
    switch (said.is) {
      case "ping":
        stream.pong(said.number);
        return;
      case "done":
        stream.done(said.number);
        return;
      case "leave":
        stream.leave();
        return;
      default:
        void resultOf(said, stream).then((result) => stream.answer(said.number, result));
    }
  }

  async function resultOf(
    said: Extract<Said, { is: "wake" | "find" | "list" }>,
    stream: FollowerStream,
  ): Promise<Result> {
    try {
      if (said.is === "list") return { is: "list", sandboxes: [...(await deps.pausedSandboxes())] };
      const { sandboxId } = said;
      if (said.is === "find") {
        const found = await deps.find(sandboxId);
        return found.is === "running" ? running(sandboxId, stream) : found;
      }
      const { signal } = new AbortController();
      const result = await deps.autoResume(sandboxId, said.port, tokensOf(said), signal);
      return result.is === "running" ? running(sandboxId, stream) : result;
    } catch (error) {
      log.warn({ err: error, asked: said.is }, "could not answer an edge");
      return { is: "failed" };
    }
  }

  /** As the routing table has it in this tick: an execution that has ended since must not reach the edge again. */
  function running(sandboxId: string, stream: FollowerStream): Result {
    const route = routes.lookup(sandboxId);
    if (route === undefined) return { is: "transitioning" };
    stream.put(route);
    return { is: "running" };
  }

  return {
    handlers: {
      follow(_input, { caller }) {
        if (isStopping) throw new AppError("unavailable", "the orchestrator is stopping");
        return open(caller).readable;
      },
      say({ params: { followerId }, body: { said } }) {
        const stream = streams.get(followerId);
        if (stream?.isOpen !== true) throw new AppError("not_found", `no stream '${followerId}' of routes is open`);
        for (const each of said) hear(stream, each);
      },
    },
    get size() {
      return [...streams.values()].filter(({ isOpen }) => isOpen).length;
    },
    async stop() {
      isStopping = true;
      for (const unlisten of forget) unlisten();
      for (const stream of streams.values()) stream.end();
      await looking.stop();
    },
  };
}

function tokensOf({ tokens: { signed, ...tokens } }: Extract<Said, { is: "wake" }>): VisitorTokens {
  return signed === undefined ? tokens : { ...tokens, signed: { ...signed, expiration: signed.expiration } };
}
