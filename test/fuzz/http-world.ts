/**
 * An edge with sandboxes behind it, for readers that are fuzzed from outside: the edge must serve a visitor after any input
 * of another client.
 */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import {
  type Backend,
  httpBackend,
  openFrontDoor,
  rawBackend,
  routed,
  routing,
} from "../integration/orchestrator/edge/front-door.ts";

/** When a connection brings nothing for this long, its peer seems to be done, and the next input may be sent. */
const SILENCE_MS = 150;
/** A visitor without an answer for this long counts as not answered. */
const ANSWER_MS = 30_000;
export const NO_ANSWER = "no answer";
/** A header that marks the requests of one input: a late request may arrive when the next input is on its way. */
const MARK = "x-input";

export interface HttpWorld {
  /**
   * Sends bytes to the edge and returns what comes back. `{R}` stands for the headers that lead to a sandbox, and for a
   * mark.
   */
  send(bytes: string, mark: string): Promise<string>;
  /** The requests with this mark that the sandbox's server has received: method, path and a hash of the body. */
  asked(mark: string): readonly string[];
  /**
   * The requests that Node's own server reads from the same bytes. On a busy machine it may need a longer silence to read
   * all.
   */
  askedDirectly(bytes: string, silenceMs: number): Promise<readonly string[]>;
  /** Sends a visitor's request to another sandbox and returns the answer; through a healthy edge that is `text`. */
  visit(text: string, agent?: Agent): Promise<string>;
  /**
   * Sends a request to a server that answers with these bytes, and returns what comes back; `agent` keeps the connection.
   */
  visitHostile(bytes: string, agent: Agent): Promise<string>;
  stop(): Promise<void>;
}

export async function openHttpWorld(): Promise<HttpWorld> {
  const door = await openFrontDoor();
  const [target, visited, hostile] = [door.add(), door.add(), door.add()];
  const seen: Asked[] = [];
  const direct: Asked[] = [];
  const answering = { bytes: "" };
  const backends: Backend[] = [
    await httpBackend(target.address, (req, res) => note(req, res, seen)),
    await httpBackend(visited.address, (req, res) => void res.end(req.headers["x-text"])),
    await rawBackend(hostile.address, (socket) => {
      socket.once("data", () => socket.end(answering.bytes, "latin1"));
    }),
  ];
  const [targetPort = 0, visitedPort = 0, hostilePort = 0] = backends.map(({ port }) => port);
  const beside: Server = createServer((req, res) => note(req, res, direct));
  beside.on("clientError", (_error, socket) => void socket.destroy());
  await once(beside.listen(0, "127.0.0.1"), "listening");

  const send = (port: number, bytes: string, mark: string, silenceMs = SILENCE_MS) => {
    const headers = `${routing(target, targetPort)}${MARK}: ${mark}\r\n`;
    return said(connect({ port, host: "127.0.0.1" }), bytes.replaceAll("{R}", headers), silenceMs);
  };
  const visiting = (headers: Record<string, string>, agent?: Agent) =>
    new Promise<string>((resolve) => {
      const asking = request({
        port: door.port,
        host: "127.0.0.1",
        headers,
        ...(agent === undefined ? {} : { agent }),
      });
      asking.on("response", (response) => void textOf(response).then(resolve));
      asking.on("error", (error) => resolve(`failed: ${error.message}`));
      asking.setTimeout(ANSWER_MS, () => {
        resolve(NO_ANSWER);
        asking.destroy();
      });
      asking.end();
    });
  return {
    send: (bytes, mark) => send(door.port, bytes, mark),
    asked: (mark) => seen.splice(0).flatMap((one) => (one.mark === mark ? [one.text] : [])),
    async askedDirectly(bytes, silenceMs) {
      const mark = `direct ${silenceMs}`;
      await send((beside.address() as AddressInfo).port, bytes, mark, silenceMs);
      return direct.splice(0).flatMap((one) => (one.mark === mark ? [one.text] : []));
    },
    visit: (text, agent) => visiting({ ...routed(visited, visitedPort), "x-text": text }, agent),
    visitHostile(bytes, agent) {
      answering.bytes = bytes;
      return visiting(routed(hostile, hostilePort), agent);
    },
    async stop() {
      await door.stop();
      for (const backend of backends) await backend.close();
      beside.closeAllConnections();
      beside.close();
    },
  };
}

interface Asked {
  readonly mark: unknown;
  readonly text: string;
}

/** Records a request once its body is whole, and answers. A target in absolute form is recorded as its path. */
function note(req: IncomingMessage, res: ServerResponse, list: Asked[]): void {
  const hash = createHash("sha256");
  req.on("data", (chunk: Buffer) => hash.update(chunk));
  req.on("error", () => undefined);
  req.on("end", () => {
    const path = (req.url ?? "").replace(/^https?:\/\/[^/?#]*/i, "");
    list.push({ mark: req.headers[MARK], text: `${req.method} ${path || "/"} ${hash.digest("hex").slice(0, 16)}` });
    res.end("ok");
  });
}

/** Sends these bytes and returns what the peer sends until it ends or is silent. */
function said(socket: Socket, bytes: string, silenceMs: number): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const over = () => {
      socket.destroy();
      resolve(received);
    };
    socket.setEncoding("latin1").setTimeout(silenceMs, over);
    socket.on("data", (text: string) => (received += text));
    socket.on("error", over).on("end", over).on("close", over);
    socket.end(bytes, "latin1");
  });
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch (error) {
    return `broken off: ${String(error)}`;
  }
  return Buffer.concat(chunks).toString("latin1");
}
