import { createServer, type Server } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { freePorts } from "../../../scripts/lib/programs/free-ports.ts";

function listen(port: number): Promise<Server> {
  const server = createServer();
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1" }, () => resolve(server));
  });
}

test("ports that another program uses are replaced by the same ones a hundred or more higher", async () => {
  const taken = await listen(0);
  const address = taken.address();
  if (address === null || typeof address === "string") throw new Error("a listening server has a port");
  const [port] = await freePorts([address.port]);
  expect(port).toBeGreaterThan(address.port);
  expect(((port ?? 0) - address.port) % 100).toBe(0);
});
