/** Archives of COPY steps from several orchestrators, each of which has only what it got itself. */

import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { templateFiles } from "../../../../agent/builds/steps/template-files.ts";
import { createOrchestrators } from "../../../../agent/joining/orchestrators.ts";
import { peeringByTokens } from "../../../../agent/joining/peering.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";

const log = createLog({ component: "test", level: "silent" });
const HASH = "a".repeat(64);
const { signal } = new AbortController();
/** Nothing listens there. */
const AWAY = "http://127.0.0.1:9";

const has: RequestListener = (_request, response) => void response.end("files");
const lacks: RequestListener = (_request, response) => void response.writeHead(404).end("{}");
const fails: RequestListener = (_request, response) => void response.writeHead(503).end("{}");

async function orchestrator(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", () => resolve()));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function fetched(...urls: string[]): Promise<string> {
  const teardown = new Teardown(log);
  onTestFinished(() => teardown.run());
  const peering = peeringByTokens({ nodeToken: "token", orchestratorToken: "other" }, []);
  const files = templateFiles({ orchestrators: createOrchestrators(urls.join(), log), peering }, teardown);
  return (await buffer(await files("t1", HASH, signal))).toString();
}

test("files come from the one that has them, also while another is away", async () => {
  expect(await fetched(await orchestrator(lacks), await orchestrator(has))).toBe("files");
  expect(await fetched(AWAY, await orchestrator(lacks), await orchestrator(has))).toBe("files");
});

test("files that none has are to be uploaded, by a sentence that says how", async () => {
  await expect(fetched(await orchestrator(lacks), await orchestrator(lacks))).rejects.toMatchObject({
    code: "bad_request",
    message: expect.stringMatching(/were not uploaded .*: build the template again with the SDK$/) as string,
  });
});

test.each([
  ["does not answer", () => Promise.resolve(AWAY)],
  ["cannot work", () => orchestrator(fails)],
])("files that may be on an orchestrator that %s are to be uploaded again", async (_what, away) => {
  for (const urls of [
    [await away(), await orchestrator(lacks)],
    [await orchestrator(lacks), await away()],
  ])
    await expect(fetched(...urls)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("another one is away: build the template again with the SDK") as string,
    });
});

test("when none answers the reason is that", async () => {
  await expect(fetched(AWAY, AWAY)).rejects.toThrow("the orchestrator did not send the files of the step");
});
