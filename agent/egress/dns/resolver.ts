/**
 * The resolver of a node: answers DNS questions over UDP and TCP by the policy of the sandbox that asks, and answers no
 * other client. Limits the questions under way in all and per sandbox, their size and their time.
 */

import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { logAcceptFailures } from "../../../shared/http/connections/accept-failures.ts";
import type { Log } from "../../../shared/program/log.ts";
import { openShares, type SharedRoom } from "../limits/shares.ts";
import { askTcp, askUdp } from "./ask.ts";
import { isQuestion } from "./message.ts";
import type { Names } from "./names.ts";
import { type Asker, answer } from "./policy.ts";
import { fit, readQuestion } from "./question.ts";
import type { UpstreamResolver } from "./upstream-resolvers.ts";

/** Largest question over TCP; real ones are a few hundred bytes. */
const LONGEST_QUESTION_BYTES = 4_096;
/** Limits of a connection. Bytes do not extend them: a question sent slowly has no more time than one never sent. */
const TCP_LIMITS = {
  /** From the start, or from the last answer, until the next question is whole. */
  questionMs: 10_000,
  /** Time for the client to read an answer. */
  answerMs: 10_000,
  /** Longest life of a connection. */
  wholeMs: 120_000,
};
type TcpLimits = typeof TCP_LIMITS;

/** Descriptors of sockets that svc-egress has bound, because only root may bind the port. */
export interface DnsSockets {
  readonly udp: number;
  readonly tcp: number;
}

export interface DnsOptions {
  readonly listen: DnsSockets | { readonly address: string; readonly port: number };
  readonly upstreams: () => Promise<readonly UpstreamResolver[]>;
  readonly names: Names;
  /** Undefined: no sandbox has this address, and the question is not answered. */
  readonly askerAt: (source: string) => Asker | undefined;
  /** For questions under way, and for connections over which they come. */
  readonly room: { readonly questions: SharedRoom; readonly dnsConnections: SharedRoom };
  /** For tests: shorter limits of TCP connections. */
  readonly tcpLimits?: TcpLimits | undefined;
  readonly log: Log;
}

export interface Dns {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startDns({
  listen,
  upstreams,
  names,
  askerAt,
  room,
  tcpLimits = TCP_LIMITS,
  log,
}: DnsOptions): Promise<Dns> {
  const inFlight = openShares(room.questions, "questions for names", log);
  const connections = openShares(room.dnsConnections, "connections to the resolver", log);
  const stopping = new AbortController();

  /** Undefined: no answer is sent. */
  const answerTo = async (message: Buffer, source: string, transport: "udp" | "tcp"): Promise<Buffer | undefined> => {
    const question = isQuestion(message) ? readQuestion(message) : undefined;
    const asker = question === undefined ? undefined : askerAt(source);
    if (question === undefined || asker === undefined || !asker.mayAsk()) return undefined;
    const once = transport === "udp" ? askUdp : askTcp;
    const forward = async (message: Buffer) => once(message, await upstreams(), stopping.signal);
    const reply = await answer(message, question, asker, { names, forward });
    return transport === "udp" ? fit(reply, message, question) : reply;
  };

  const answerUdp = async (udp: UdpSocket, message: Buffer, from: RemoteInfo) => {
    const asker = askerAt(from.address);
    if (asker === undefined) return;
    if (!inFlight.enter(from.address)) return asker.tooMany();
    try {
      const reply = await answerTo(message, from.address, "udp");
      if (reply !== undefined && !stopping.signal.aborted) udp.send(reply, from.port, from.address, () => undefined);
    } finally {
      inFlight.leave(from.address);
    }
  };

  /** Undefined: the connection ends, also when its sandbox has too many questions under way. */
  const answerTcp = async (message: Buffer, source: string): Promise<Buffer | undefined> => {
    if (!inFlight.enter(source)) {
      askerAt(source)?.tooMany();
      return undefined;
    }
    try {
      return await answerTo(message, source, "tcp");
    } finally {
      inFlight.leave(source);
    }
  };

  const udp = createSocket("udp4");
  udp.on("message", (question, from) => {
    answerUdp(udp, question, from).catch((error: unknown) => log.debug({ err: error }, "could not resolve a name"));
  });
  // For a descriptor Node emits the event within the call.
  const listening = once(udp, "listening");
  udp.bind("udp" in listen ? { fd: listen.udp } : listen);
  await listening;
  udp.on("error", (error) => log.warn({ err: error }, "the resolver's socket failed"));

  const server = createServer((socket) => {
    const source = socket.remoteAddress ?? "";
    socket.on("error", () => socket.destroy());
    if (askerAt(source) === undefined || !connections.enter(source)) return void socket.destroy();
    socket.once("close", () => connections.leave(source));
    serveTcp(socket, tcpLimits, (message) => answerTcp(message, source));
  });
  const bound = udp.address().port;
  server.listen("tcp" in listen ? { fd: listen.tcp } : { host: listen.address, port: bound });
  try {
    await once(server, "listening");
  } catch (error) {
    udp.close();
    throw error;
  }
  logAcceptFailures(server, log, "the resolver could not accept a connection");
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });

  return {
    port: bound,
    async stop() {
      stopping.abort();
      for (const socket of sockets) socket.destroy();
      const closed = [once(udp, "close"), once(server, "close")];
      udp.close();
      server.close();
      await Promise.all(closed);
    },
  };
}

/** One question at a time, each preceded by its length, and none before the client has read the last answer. */
function serveTcp(
  socket: Socket,
  { questionMs, answerMs, wholeMs }: TcpLimits,
  answer: (question: Buffer) => Promise<Buffer | undefined>,
): void {
  let pending = Buffer.alloc(0);
  const end = () => void socket.destroy();
  const whole = setTimeout(end, wholeMs);
  let step = setTimeout(end, questionMs);
  const within = (ms: number) => {
    clearTimeout(step);
    if (!socket.destroyed) step = setTimeout(end, ms);
  };
  socket.once("close", () => {
    clearTimeout(whole);
    clearTimeout(step);
  });
  const send = async (question: Buffer) => {
    const reply = await answer(question);
    if (reply === undefined || socket.destroyed) return end();
    const size = Buffer.alloc(2);
    size.writeUInt16BE(reply.length);
    within(answerMs);
    await new Promise<void>((resolve) => socket.write(Buffer.concat([size, reply]), () => resolve()));
    if (socket.destroyed) return;
    within(questionMs);
    socket.resume();
    take();
  };
  const take = () => {
    if (pending.length < 2) return;
    const length = pending.readUInt16BE(0);
    if (length > LONGEST_QUESTION_BYTES) return end();
    if (pending.length < 2 + length) return;
    const question = pending.subarray(2, 2 + length);
    pending = pending.subarray(2 + length);
    socket.pause();
    // The time of the upstream resolvers does not count, because they have separate limits.
    clearTimeout(step);
    send(question).catch(end);
  };
  socket.on("data", (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    take();
  });
}
