/** Requests to upgrade as Docker's and Kubernetes' clients send them: by POST, with a body. */

import { createServer } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { listening } from "../../../support/peers/listening.ts";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { httpBackend, routing, WAYS } from "./front-door.ts";
import { sharedDoor } from "./shared-door.ts";

const BODY = '{"Detach":false,"Tty":true}';

describe.each(WAYS)("a POST that asks to upgrade, $route,", ({ sameHost }) => {
  const door = sharedDoor({ sameHost });

  const asking = (port: number, protocol: string, body: string) =>
    `POST /exec/1/start HTTP/1.1\r\n${routing(door.route, port)}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

  /** A server that reads the body of a request to upgrade, tells what it got, and echoes from then on. */
  async function daemon() {
    const server = createServer((_request, response) => response.end("not upgraded"));
    server.on("upgrade", (request, socket: Socket, head: Buffer) => {
      let text = head.toString();
      const length = Number(request.headers["content-length"] ?? 0);
      const look = () => {
        if (text.length < length) return;
        socket.removeListener("data", take);
        const { upgrade = "" } = request.headers;
        socket.write(`HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`);
        socket.write(`${request.method} ${text}|`);
        socket.pipe(socket);
      };
      const take = (chunk: Buffer) => {
        text += chunk.toString();
        look();
      };
      socket.on("data", take);
      socket.on("error", () => undefined);
      look();
    });
    const port = await listening(server, door.route.address);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return port;
  }

  test.each([
    ["Docker's exec", "tcp", BODY],
    ["Docker's attach", "tcp", ""],
    ["kubectl's exec", "SPDY/3.1", ""],
  ])("is forwarded with its body: %s", async (_name, protocol, body) => {
    const client = await RawClient.open(door.port);
    const got = await client
      .send(asking(await daemon(), protocol, body))
      .until((text) => text.endsWith("|") || text.includes("not upgraded"));
    expect(got).toMatch(/^HTTP\/1\.1 101 /);
    expect(got).toContain(`\r\nUpgrade: ${protocol}\r\n`);
    expect(got.split("\r\n\r\n")[1]).toBe(`POST ${body}|`);
    await client.send("ls\n").until((text) => text.endsWith("ls\n"));
    client.destroy();
  });

  test("reaches the server once its body has come, and bytes behind the body only after the 101", async () => {
    const client = await RawClient.open(door.port);
    const request = asking(await daemon(), "tcp", BODY);
    client.send(request.slice(0, -10));
    await new Promise((resolve) => setImmediate(resolve));
    const got = await client.send(`${request.slice(-10)}early`).until((text) => text.endsWith("early"));
    expect(got.split("\r\n\r\n")[1]).toBe(`POST ${BODY}|early`);
    client.destroy();
  });

  test("that the server declines gets its answer, and nothing of the body is read as a request", async () => {
    const requests: string[] = [];
    const backend = await httpBackend(door.route.address, (request, response) => {
      requests.push(`${request.method} ${request.url}`);
      response.writeHead(409).end("no such exec");
    });
    onTestFinished(() => backend.close());
    const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
    const client = await RawClient.open(door.port);
    const answer = await client.send(asking(backend.port, "tcp", hidden) + hidden).toEnd();
    expect(answer).toMatch(/^HTTP\/1\.1 409 Conflict\r\n/);
    expect(answer).toContain("no such exec");
    expect(answer.split("HTTP/1.1")).toHaveLength(2);
    expect(requests).toEqual(["POST /exec/1/start"]);
    client.destroy();
  });
});
