import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { forgetKeptConnections } from "../../support/connections/kept-connections.ts";

test("a request after kept connections were forgotten opens a connection of its own, and one on its way still ends", async () => {
  let opened = 0;
  const held: (() => void)[] = [];
  const server = createServer((request, response) => {
    if (request.url === "/held") held.push(() => response.end("late"));
    else response.end("now");
  });
  server.on("connection", () => (opened += 1));
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = async (path: string) => (await fetch(`${url}${path}`)).text();

  const newlyOpened = async () => {
    const before = opened;
    expect(await ask("/")).toBe("now");
    return opened - before;
  };
  await expect.poll(newlyOpened).toBe(0);
  const late = ask("/held");
  await expect.poll(() => held.length).toBe(1);
  forgetKeptConnections();
  expect(await newlyOpened()).toBe(1);
  held[0]?.();
  expect(await late).toBe("late");
});
