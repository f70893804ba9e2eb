import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
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
