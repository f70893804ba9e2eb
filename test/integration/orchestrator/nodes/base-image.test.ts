/** A machine that joins takes the base template's image from the platform: the program of `up` and the real orchestrator on TLS. */

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openPeering } from "../../../../agent/joining/open-peering.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { admin, newJoinToken, newMachine, nodesUrlOf } from "../../../support/cluster/members.ts";

const PROGRAM = join(import.meta.dirname, "../../../../scripts/host/engine/base-from-platform.mjs");
const RECIPE = "0123456789ab";
const CONTENT = randomBytes(3 << 20);
const GAVE_NONE = 3;

const archives = mkdtempSync(join(tmpdir(), "svc-archives-"));
let cluster: Cluster;
beforeAll(async () => {
  writeFileSync(join(archives, `base-${RECIPE}.tar.gz`), CONTENT);
  cluster = await startCluster({ config: { nodesPort: 0, baseArchives: archives } });
});
afterAll(async () => {
  await cluster.stop();
  rmSync(archives, { recursive: true });
});

interface Taken {
  readonly status: number;
  readonly said: string;
  /** What is in the machine's directory afterwards. */
  readonly left: readonly string[];
  readonly content: Buffer | undefined;
}

interface Asked {
  readonly token: string;
  readonly urls?: string;
  readonly recipe?: string;
}

/** As `scripts/host/engine/base-image` of a new machine starts the program. */
function take({ token, urls = nodesUrlOf(cluster), recipe = RECIPE }: Asked): Promise<Taken> {
  const home = mkdtempSync(join(tmpdir(), "svc-takes-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  const file = join(home, "image");
  const env = { JOIN_TOKEN: token };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, urls, recipe, file], { env, encoding: "utf8" }, (error, stdout, stderr) => {
      const left = readdirSync(home);
      const content = left.includes("image") ? readFileSync(file) : undefined;
      resolve({ status: Number(error?.code ?? 0), said: `${stdout}${stderr}`.trim(), left, content });
    });
  });
}

/** An address in front of the platform's port for nodes that cuts each connection after so many bytes of answers. */
async function cutAfter(bytes: number): Promise<string> {
  const server = createServer((near) => {
    const far = connect(Number(new URL(nodesUrlOf(cluster)).port), "127.0.0.1");
    let passed = 0;
    near.pipe(far);
    far.on("data", (part) => {
      passed += part.length;
      if (passed <= bytes) near.write(part);
      else near.destroy();
    });
    for (const socket of [near, far]) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        near.destroy();
        far.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a machine that joins gets the whole archive for its token, and joins with the same token after it", async () => {
  const token = await newJoinToken(cluster);
  const { status, said, left, content } = await take({ token });
  expect({ status, said, left }).toEqual({ status: 0, said: "", left: ["image"] });
  expect(content?.equals(CONTENT)).toBe(true);

  const log = createLog({ component: "test", level: "silent" });
  const peering = await openPeering({ ...(await newMachine(cluster)), joinToken: token }, { now: Date.now, log });
  expect(peering.orchestratorTokens.length).toBeGreaterThan(0);
  const again = await take({ token });
  expect(again).toMatchObject({ status: GAVE_NONE, left: [], said: expect.stringMatching(/was used at .* by node/) });
});

const changed = (text: string) => text.slice(0, -1) + (text.endsWith("A") ? "B" : "A");
const ofAuthority = (token: string, digest: string) => token.replace(/\.[0-9a-f]{64}\./, `.${digest}.`);

test.each([
  ["of a wrong secret", changed, /does not know this join token/],
  ["that is cut off", (token: string) => token.slice(0, -1), /^the join token is cut off or changed$/],
  ["of another authority", (token: string) => ofAuthority(token, "0".repeat(64)), /shows another authority/],
  ["that is none", () => "", /cut off or changed/],
])("a token %s gets nothing, with the reason in a line", async (_what, change, reason) => {
  const { status, said, left } = await take({ token: change(await newJoinToken(cluster)) });
  expect({ status, left }).toEqual({ status: GAVE_NONE, left: [] });
  expect(said).toMatch(reason);
  expect(said).not.toContain("\n");
});

test("a token for an edge, which runs no sandboxes, gets nothing", async () => {
  const made = await cluster.ask("POST", "/admin/join-tokens", { ...admin, body: { kind: "edge" } });
  const { status, said } = await take({ token: (made.body as { token: string }).token });
  expect(status).toBe(GAVE_NONE);
  expect(said).toContain("is for an edge");
});

test("another recipe than the platform's is answered by a reason", async () => {
  const { status, said, left } = await take({ token: await newJoinToken(cluster), recipe: "ba9876543210" });
  expect({ status, left }).toEqual({ status: GAVE_NONE, left: [] });
  expect(said).toContain("the platform has no base image of the recipe ba9876543210");
});

test.each([
  ["for another processor", `${RECIPE}?processor=s390x`, 404, "not s390x"],
  ["that leads to another file", `..%2F${RECIPE}?processor=${process.arch}`, 400, "12 hexadecimal digits"],
])("a request %s is refused", async (_what, path, status, message) => {
  const token = await newJoinToken(cluster);
  const answer = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const url = `${nodesUrlOf(cluster)}/internal/base-image/${path}`;
    request(url, { headers: { "x-join-token": token }, rejectUnauthorized: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode, text }));
    })
      .on("error", reject)
      .end();
  });
  expect(answer.status).toBe(status);
  expect(answer.text).toContain(message);
});

test("an archive that is cut on its way leaves nothing, and the next orchestrator is asked", async () => {
  const [token, cut] = [await newJoinToken(cluster), await cutAfter(1 << 20)];
  expect(await take({ token, urls: cut })).toMatchObject({ status: GAVE_NONE, left: [] });
  const { status, content } = await take({ token, urls: `${cut},${nodesUrlOf(cluster)}` });
  expect(status).toBe(0);
  expect(content?.equals(CONTENT)).toBe(true);
});

test("a platform whose machine keeps no archives says that it has none", async () => {
  const other = await startCluster({ config: { nodesPort: 0 } });
  onTestFinished(() => other.stop());
  const { status, said } = await take({ token: await newJoinToken(other), urls: nodesUrlOf(other) });
  expect(status).toBe(GAVE_NONE);
  expect(said).toContain("the platform has no base image");
});
