import { expect, onTestFinished, test } from "vitest";
import { RawClient } from "../../../support/peers/raw-client.ts";
import { carelessServer, METHODS, withHidden } from "../../../support/peers/unread-bodies.ts";
import { openFrontDoor, routing, WAYS } from "./front-door.ts";

const TRIES = 40;

/** Sends one request and waits for the end of its answer, a body of two bytes. */
async function visit(port: number, request: string): Promise<void> {
  const client = await RawClient.open(port);
  await client.send(request).until((text) => text.endsWith("\r\n\r\nok"));
  client.destroy();
}

test.each(WAYS)(
  "bytes of a body that a server leaves unread are never read as a request, $route",
  async ({ sameHost }) => {
    const door = await openFrontDoor({ sameHost });
    onTestFinished(() => door.stop());
    const route = door.add();
    const server = await carelessServer(route.address);
    onTestFinished(() => server.stop());
    const headers = routing(route, server.port);
    for (let count = 0; count < TRIES; count++) {
      const method = METHODS[count % METHODS.length] ?? "GET";
      await visit(door.port, withHidden(method, "/attack", headers));
      await visit(door.port, `GET /victim HTTP/1.1\r\n${headers}\r\n`);
    }
    const victims = () => server.served.filter((line) => line === "GET /victim").length;
    await expect.poll(victims).toBe(TRIES);
    expect(server.served.filter((line) => line.includes("hidden"))).toEqual([]);
  },
);
