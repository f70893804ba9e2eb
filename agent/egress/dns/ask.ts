/**
 * Sends one question to the machine's resolvers, one after the other, each with its own socket and time limit, until one of them
 * can answer it.
 */

import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { within } from "../../../shared/program/deadline.ts";
import { answers, failure, withId } from "./message.ts";
import { CODE, codeOfReply } from "./question.ts";
import type { UpstreamResolver } from "./upstream-resolvers.ts";

/** Answers with which a resolver says that it cannot answer: programs on the node's machine then ask the next one, as glibc does. */
const PASSED_ON: ReadonlySet<number> = new Set([CODE.failed, CODE.notImplemented, CODE.refused]);

const UDP_LIMIT_MS = 2_500;
/** A packet may be lost: the question is sent again. */
const UDP_AGAIN_MS = 1_000;
const TCP_LIMIT_MS = 5_000;

type AskResolver = (question: Buffer, id: number, upstream: UpstreamResolver, signal: AbortSignal) => Promise<Buffer>;

/** Why no resolver of the node answered. */
export type NoAnswer = "timeout" | "unreachable" | "no resolver";

export interface Reply {
  /** Under the question's own id. */
  readonly message: Buffer;
  /** Set when no resolver answered: the message is then a failure of our own. */
  readonly noAnswer?: NoAnswer;
}

export const askUdp = (question: Buffer, upstreams: readonly UpstreamResolver[], signal: AbortSignal) =>
  ask(question, upstreams, signal, { once: overUdp, limitMs: UDP_LIMIT_MS });

export const askTcp = (question: Buffer, upstreams: readonly UpstreamResolver[], signal: AbortSignal) =>
  ask(question, upstreams, signal, { once: overTcp, limitMs: TCP_LIMIT_MS });

async function ask(
  question: Buffer,
  upstreams: readonly UpstreamResolver[],
  signal: AbortSignal,
  { once, limitMs }: { once: AskResolver; limitMs: number },
): Promise<Reply> {
  let noAnswer: NoAnswer = "no resolver";
  let unhelpful: Buffer | undefined;
  for (const upstream of upstreams) {
    const id = randomInt(0x10000);
    const reply = await within(limitMs, (limit) =>
      once(question, id, upstream, AbortSignal.any([signal, limit])).catch(() => {
        noAnswer = limit.aborted ? "timeout" : "unreachable";
        return undefined;
      }),
    );
    if (reply !== undefined) {
      const message = withId(reply, question.readUInt16BE(0));
      if (!PASSED_ON.has(codeOfReply(reply))) return { message };
      unhelpful ??= message;
    }
    if (signal.aborted) break;
  }
  if (unhelpful !== undefined) return { message: unhelpful };
  return { message: failure(question), noAnswer };
}

const overUdp: AskResolver = (question, id, { host, port }, signal) =>
  new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    let again: NodeJS.Timeout | undefined;
    let isOver = false;
    const finish = (settle: () => void) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(again);
      signal.removeEventListener("abort", abort);
      socket.close();
      settle();
    };
    const fail = (error: Error) => finish(() => reject(error));
    const abort = () => fail(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", fail);
    socket.on("message", (reply) => {
      if (answers(reply, question, id)) finish(() => resolve(reply));
    });
    // A connected socket gets only this resolver's answers; the system chooses its port, which is therefore random.
    socket.connect(port, host, (error?: Error) => {
      // Where the kernel knows no way to the resolver, Node gives the error here and emits none; a send would throw.
      if (error !== undefined) {
        fail(error);
        return;
      }
      if (isOver) return;
      const send = () => {
        socket.send(withId(question, id), (unsent) => {
          if (unsent !== null) fail(unsent);
        });
      };
      send();
      again = setTimeout(send, UDP_AGAIN_MS);
    });
  });

const overTcp: AskResolver = (question, id, { host, port }, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    // Node's option for this keeps its listener, and so the socket, for as long as the signal lives.
    const abort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    socket.once("close", () => signal.removeEventListener("abort", abort));
    if (signal.aborted) abort();
    let received = Buffer.alloc(0);
    const fail = (error: Error) => {
      socket.destroy();
      reject(error);
    };
    socket.once("error", fail);
    socket.once("close", () => reject(new Error("the resolver closed the connection")));
    socket.once("connect", () => {
      const size = Buffer.alloc(2);
      size.writeUInt16BE(question.length);
      socket.write(Buffer.concat([size, withId(question, id)]));
    });
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return;
      const reply = received.subarray(2, 2 + received.readUInt16BE(0));
      if (!answers(reply, question, id)) return fail(new Error("the resolver answered another question"));
      resolve(reply);
      socket.destroy();
    });
  });
