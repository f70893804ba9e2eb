import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { listening } from "../../support/peers/listening.ts";
import { inBackground } from "./process/following.ts";
import { as, clientsOf, runEnvd } from "./running-envd.ts";

test("streams end with the reason that the sandbox ends, instead of being cut", async () => {
  const envd = await runEnvd();
  const { process, filesystem } = clientsOf(envd.url);
  const command = await inBackground(
    process.start({ process: { cmd: "sh", args: ["-c", "echo $$; exec sleep 60"], envs: {} } }, as("user")),
  );
  const watching = filesystem.watchDir({ path: envd.home }, as("user"))[Symbol.asyncIterator]();
  await watching.next();
  const [commandEnd, watchEnd] = [
    command.done.catch((error: unknown) => error),
    watching.next().catch((error: unknown) => error),
  ];
  const started = Date.now();
  await envd.stop();
  expect(Date.now() - started).toBeLessThan(30_000);
  for (const end of [await commandEnd, await watchEnd])
    expect(end).toMatchObject({
      code: Code.Unavailable,
      rawMessage: expect.stringContaining("The sandbox was killed or reached its end of life"),
    });
  globalThis.process.kill(command.pid, "SIGKILL");
});

test("envd stops at once without clients, and its port is free", async () => {
  const envd = await runEnvd();
  await clientsOf(envd.url).process.list({});
  const started = Date.now();
  await envd.stop();
  expect(Date.now() - started).toBeLessThan(30_000);
  await expect(fetch(`${envd.url}/health`)).rejects.toThrow("fetch failed");
});

test("envd stops also while a connection to a server inside is open", async () => {
  const envd = await runEnvd();
  const server = createServer((socket) => void socket.on("error", () => undefined));
  onTestFinished(() => void server.close());
  const port = await listening(server, "127.0.0.1");
  const headers = { connection: "Upgrade", upgrade: "svc-tcp" };
  const call = request({ port: envd.port, method: "POST", path: `/connect?port=${port}`, headers }).end();
  const [, socket] = (await once(call, "upgrade")) as [unknown, NodeJS.ReadableStream];
  const closed = new Promise<void>((resolve) => {
    socket.on("error", () => undefined).on("close", resolve);
  });
  socket.resume();
  await envd.stop();
  await closed;
});
