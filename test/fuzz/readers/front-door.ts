/**
 * Fuzzes requests and responses through the edge from outside: with any bytes on one connection, the edge serves other
 * visitors.
 */

import { Agent } from "node:http";
import { type HttpWorld, NO_ANSWER, openHttpWorld } from "../http-world.ts";
import { must, type Reader } from "../reader.ts";

const REQUESTS = [
  "GET /a HTTP/1.1\r\n{R}\r\n",
  "POST /b HTTP/1.1\r\n{R}Content-Length: 5\r\n\r\nhello",
  "POST /c HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  "POST /d HTTP/1.1\r\n{R}Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
  "GET /e HTTP/1.1\r\n{R}\r\nGET /f HTTP/1.1\r\n{R}\r\n",
  "PUT /g HTTP/1.1\r\n{R}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
  "GET http://127.0.0.1/h HTTP/1.1\r\n{R}Connection: close\r\n\r\n",
];
const RESPONSES = [
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
  "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "HTTP/1.0 200 OK\r\n\r\nuntil the end",
  "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
];
/** How long Node's server may take to read the requests that the sandbox received; the check tries each time in turn. */
const SILENCES_MS = [150, 2_000, 20_000];
const WORDS = [
  "Content-Length: 0\r\n",
  "Content-Length: 3\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Transfer-Encoding:",
  "Connection: close\r\n",
  "0\r\n\r\n",
  "\r\n",
  "\r\n\r\n",
  "\n",
  "GET /hidden HTTP/1.1\r\n{R}\r\n",
  "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
  "{R}",
  "Upgrade: h2c\r\n",
];

/** A reader with an edge of its own from its first input to its last. */
function throughEdge(
  about: Omit<Reader, "check" | "begin" | "end">,
  check: (world: HttpWorld, text: string, index: number) => Promise<void>,
): Reader {
  const state = { world: undefined as HttpWorld | undefined, index: 0 };
  return {
    ...about,
    async begin() {
      state.world = await openHttpWorld();
    },
    async end() {
      await state.world?.stop();
      state.world = undefined;
    },
    async check(input) {
      if (state.world === undefined) throw new Error("the reader was not begun");
      state.index += 1;
      await check(state.world, input.toString("latin1"), state.index);
    },
  };
}

export const frontDoor: readonly Reader[] = [
  throughEdge(
    {
      name: "edge-request",
      promise:
        "a sandbox's server is asked what the same bytes ask Node's own server; other visitors get their answers",
      seeds: () => REQUESTS,
      words: WORDS,
      longest: 1_500,
      share: 300,
    },
    async (world, text, index) => {
      const mark = String(index);
      const received = await world.send(text, mark);
      must(
        received === "" || received.startsWith("HTTP/1.1 "),
        `the edge said ${JSON.stringify(received.slice(0, 80))}`,
      );
      const asked = world.asked(mark);
      let unknown = asked;
      for (const silenceMs of SILENCES_MS) {
        if (unknown.length === 0) break;
        const known = new Set(await world.askedDirectly(text, silenceMs));
        unknown = asked.filter((one) => !known.has(one));
      }
      must(unknown.length === 0, `the sandbox was asked what Node's server was not: ${unknown.join("; ")}`);
      const answer = await world.visit(`visitor ${index}`);
      must(answer === `visitor ${index}`, `visitor ${index} got ${JSON.stringify(answer.slice(0, 200))}`);
    },
  ),
  throughEdge(
    {
      name: "edge-response",
      promise:
        "after any answer of a server in a sandbox, the next request on the visitor's connection gets its own answer",
      seeds: () => RESPONSES,
      words: WORDS,
      longest: 1_500,
      share: 200,
    },
    async (world, text, index) => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      try {
        const answered = await world.visitHostile(text, agent);
        must(!answered.includes(NO_ANSWER), "the visitor of the hostile server got no answer");
        const first = await world.visit(`visitor ${index}`, agent);
        // After a bad answer the edge may close a connection in the moment in which the client uses it again.
        const answer = first.startsWith("failed: ") ? await world.visit(`visitor ${index}`, agent) : first;
        must(answer === `visitor ${index}`, `visitor ${index} got ${JSON.stringify(answer.slice(0, 200))}`);
      } finally {
        agent.destroy();
      }
    },
  ),
];
