/**
 * Auto-resume: a request to a paused sandbox resumes it, waits meanwhile and is served, if its tokens and the policy allow
 * that.
 */

import { createServer, type Server } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { AppError } from "../../../../shared/http/errors.ts";
import { fileSignature } from "../../../../shared/ids.ts";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { sandboxesOn } from "../../../support/cluster/sandboxes.ts";
import { listening } from "../../../support/peers/listening.ts";
import { gateway } from "../../../support/runner/promises.ts";

/** The address of every sandbox: a loopback address on which nothing else listens, nor the same test of another run. */
const ADDRESS = `127.${1 + ((process.pid >> 8) & 127)}.${process.pid & 255}.83`;
const ENVD_PORT = 49_983;

let cluster: Cluster;
let port = 0;
const servers: Server[] = [];

async function serveInside(at: number): Promise<number> {
  const server = createServer((request, response) => response.end(`inside ${request.url}`));
  new WebSocketServer({ server }).on("connection", (socket) => socket.send("hello"));
  servers.push(server);
  return listening(server, ADDRESS, at);
}

beforeAll(async () => {
  port = await serveInside(0);
  await serveInside(ENVD_PORT);
});
afterAll(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});
beforeEach(async () => {
  cluster = await startCluster({
    agent: { address: ADDRESS },
    config: { orphanGraceMs: 100 },
  });
});
afterEach(() => cluster.stop());

const { pause, paused: pausedAs, read } = sandboxesOn(() => cluster);
/** Makes a paused sandbox whose policy allows auto-resume. */
const paused = (body: object = {}, how: object = {}) =>
  pausedAs({ autoPause: true, autoResume: { enabled: true }, ...body }, how);

interface Visit {
  readonly to?: number;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function visit(id: string, { to = port, path = "/x", headers = {} }: Visit = {}) {
  const response = await fetch(`${cluster.edgeUrl}${path}`, {
    headers: { "svc-sandbox-id": id, "svc-sandbox-port": String(to), ...headers },
  });
  return { status: response.status, text: await response.text() };
}

const notFound = (sandboxId: string) => ({
  status: 502,
  text: JSON.stringify({ sandboxId, message: "The sandbox was not found", code: 502 }),
});

const isPaused = (sandboxId: string) => ({
  status: 502,
  text: JSON.stringify({ sandboxId, message: "The sandbox is paused: connect to resume it", code: 502 }),
});

test("a request that resumes a sandbox is served by it, and it runs for at least 300 s", async () => {
  const { sandboxID } = await paused({ timeout: 60 });
  const before = Date.now();
  expect(await visit(sandboxID)).toEqual({ status: 200, text: "inside /x" });
  const after = Date.now();
  const detail = await read(sandboxID);
  expect(detail.state).toBe("running");
  expect(Date.parse(detail.endAt)).toBeGreaterThanOrEqual(before + 300_000);
  expect(Date.parse(detail.endAt)).toBeLessThanOrEqual(after + 300_000);
});

test("an auto-resume uses the timeout of the create call, not a later one", async () => {
  const { sandboxID } = await paused({ timeout: 420 });
  await cluster.ask("POST", `/v2/sandboxes/${sandboxID}/connect`, { body: { timeout: 600 } });
  await cluster.ask("POST", `/sandboxes/${sandboxID}/pause`);
  const before = Date.now();
  await visit(sandboxID);
  const after = Date.now();
  const endAt = Date.parse((await read(sandboxID)).endAt);
  expect(endAt).toBeGreaterThanOrEqual(before + 420_000);
  expect(endAt).toBeLessThanOrEqual(after + 420_000);
});

test("many requests at once are one resume, and all are served", async () => {
  const { sandboxID } = await paused();
  const answers = await Promise.all(Array.from({ length: 20 }, () => visit(sandboxID)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  expect(cluster.agent.starts).toHaveLength(2);
});

test("a WebSocket to the sandbox's host name resumes it", async () => {
  const { sandboxID } = await paused();
  const socket = new WebSocket(cluster.edgeUrl.replace("http", "ws"), {
    headers: { host: `${port}-${sandboxID}.localhost` },
  });
  const message = await new Promise<string>((resolve, reject) => {
    socket.once("message", (data: Buffer) => resolve(data.toString()));
    socket.once("error", reject);
  });
  socket.close();
  expect(message).toBe("hello");
});

test("a request for a sandbox that is being paused waits for the pause, then resumes it", async () => {
  const { sandboxID } = await paused();
  await visit(sandboxID);
  const [begun, go] = [gateway(), gateway()];
  cluster.agent.onPause = async (_request, take) => {
    begun.resolve();
    await go.promise;
    take();
  };
  const pausing = pause(sandboxID);
  await begun.promise;
  const visiting = visit(sandboxID);
  go.resolve();
  expect((await pausing).status).toBe(204);
  expect((await visiting).status).toBe(200);
});

describe("no sandbox is resumed", () => {
  test.each<[string, object, object]>([
    ["without the policy", { autoResume: { enabled: false } }, {}],
    ["from a snapshot without memory", {}, { memory: false }],
  ])("%s", async (_what, body, how) => {
    const { sandboxID, envdAccessToken = "" } = await paused(body, how);
    expect(await visit(sandboxID)).toEqual(notFound(sandboxID));
    const health = await visit(sandboxID, { to: ENVD_PORT, headers: { "x-access-token": envdAccessToken } });
    expect(health).toEqual(isPaused(sandboxID));
    expect(cluster.agent.starts).toHaveLength(1);
  });

  test("that was killed or never existed", async () => {
    const { sandboxID } = await paused();
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    expect(await visit(sandboxID)).toEqual(notFound(sandboxID));
    expect(await visit("inosuchsandbox")).toEqual(notFound("inosuchsandbox"));
  });

  test("on envd's port without its token, and with a wrong one", async () => {
    const { sandboxID, envdAccessToken = "" } = await paused();
    expect((await visit(sandboxID, { to: ENVD_PORT, path: "/health" })).status).toBe(403);
    const wrong = await visit(sandboxID, { to: ENVD_PORT, path: "/health", headers: { "x-access-token": "wrong" } });
    expect(wrong.status).toBe(403);
    expect(cluster.agent.starts).toHaveLength(1);
    const right = await visit(sandboxID, {
      to: ENVD_PORT,
      path: "/health",
      headers: { "x-access-token": envdAccessToken },
    });
    expect(right).toEqual({ status: 200, text: "inside /health" });
  });

  test("for private traffic without the traffic token", async () => {
    const { sandboxID, trafficAccessToken } = await paused({ network: { allowPublicTraffic: false } });
    expect((await visit(sandboxID)).status).toBe(403);
    expect((await visit(sandboxID, { headers: { "e2b-traffic-access-token": "wrong" } })).status).toBe(403);
    expect(cluster.agent.starts).toHaveLength(1);
    // Either header may carry the token, as for a running sandbox.
    const headers = { "e2b-traffic-access-token": "wrong", "svc-traffic-access-token": trafficAccessToken ?? "" };
    expect((await visit(sandboxID, { headers })).status).toBe(200);
  });

  test("when the node fails: the visitor gets the contract's 502 without the cause", async () => {
    const { sandboxID } = await paused();
    cluster.agent.onStart = () => {
      throw new AppError("snapshot_corrupt", "a secret place is damaged");
    };
    expect(await visit(sandboxID)).toEqual(notFound(sandboxID));
    expect((await read(sandboxID)).state).toBe("paused");
  });

  test("beyond the project's limit: the visitor gets 429", async () => {
    const { sandboxID } = await paused();
    await cluster.restart({ maxProjectSandboxes: 1 });
    await cluster.agent.beat();
    await cluster.ask("POST", "/v2/sandboxes", { body: { templateID: "base" } });
    expect((await visit(sandboxID)).status).toBe(429);
  });

  test("within the time limit: the visitor gets 409, and the resume continues", async () => {
    const { sandboxID } = await paused();
    await cluster.restart({ autoResumeTimeoutMs: 100 });
    await cluster.agent.beat();
    const go = gateway();
    cluster.agent.onStart = async (_start, run) => {
      await go.promise;
      run();
    };
    expect((await visit(sandboxID)).status).toBe(409);
    go.resolve();
    await expect.poll(async () => (await read(sandboxID)).state, { timeout: 30_000 }).toBe("running");
  });
});

const path = "/home/user/a.txt";
const url = (token: string) => {
  const signature = fileSignature({ path, operation: "read", username: "", token });
  return `/files?${new URLSearchParams({ path, signature }).toString()}`;
};

describe("of a paused sandbox that traffic does not resume", () => {
  const asleep = (body: object = {}) => paused({ autoResume: { enabled: false }, ...body });

  test("holders of a token or a key learn that it is paused, and it stays paused", async () => {
    const {
      sandboxID,
      envdAccessToken = "",
      trafficAccessToken,
    } = await asleep({
      network: { allowPublicTraffic: false },
    });
    const visits: Visit[] = [
      { headers: { "x-access-token": envdAccessToken } },
      { to: ENVD_PORT, path: "/health", headers: { "x-access-token": envdAccessToken } },
      { headers: { "e2b-traffic-access-token": trafficAccessToken ?? "" } },
      { headers: { "e2b-traffic-access-token": "wrong", "svc-traffic-access-token": trafficAccessToken ?? "" } },
      { headers: { "x-api-key": cluster.key } },
      { to: ENVD_PORT, path: url(envdAccessToken) },
    ];
    for (const each of visits) expect([each, await visit(sandboxID, each)]).toEqual([each, isPaused(sandboxID)]);
    const unaddressed = await fetch(`${cluster.edgeUrl}${url(envdAccessToken)}`);
    expect({ status: unaddressed.status, text: await unaddressed.text() }).toEqual(isPaused(sandboxID));
    expect((await read(sandboxID)).state).toBe("paused");
    expect(cluster.agent.starts).toHaveLength(1);
  });

  test("all others get the answer for a sandbox that never existed", async () => {
    const { sandboxID } = await asleep();
    const { envdAccessToken = "", trafficAccessToken } = await asleep({ network: { allowPublicTraffic: false } });
    const { key } = await cluster.addProject("neighbour");
    const visits: Visit[] = [
      {},
      { to: ENVD_PORT, path: "/health" },
      { headers: { "x-access-token": "wrong" } },
      { headers: { "x-access-token": envdAccessToken } },
      { headers: { "e2b-traffic-access-token": trafficAccessToken ?? "" } },
      { headers: { "x-api-key": key } },
      { headers: { "x-api-key": `svc_${"0".repeat(40)}` } },
      { headers: { "x-api-key": "no key" } },
      { to: ENVD_PORT, path: url(envdAccessToken) },
    ];
    for (const each of visits) {
      const nobody = "inosuchsandbox";
      expect([each, await visit(sandboxID, each)]).toEqual([each, notFound(sandboxID)]);
      expect([each, await visit(nobody, each)]).toEqual([each, notFound(nobody)]);
    }
  });

  test("a key that was revoked shows nothing", async () => {
    const { sandboxID } = await asleep();
    const headers = { "x-api-key": cluster.key };
    const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN } };
    const route = `/admin/teams/${cluster.teamId}/api-keys`;
    const made = await cluster.ask("POST", route, { ...admin, body: { name: "other" } });
    const { id, key } = made.body as { id: string; key: string };
    expect(await visit(sandboxID, { headers: { "x-api-key": key } })).toEqual(isPaused(sandboxID));
    expect((await cluster.ask("DELETE", `${route}/${id}`, admin)).status).toBe(204);
    expect(await visit(sandboxID, { headers: { "x-api-key": key } })).toEqual(notFound(sandboxID));
    expect(await visit(sandboxID, { headers })).toEqual(isPaused(sandboxID));
  });

  test("holders get not found once it has been killed, and the port's answer once it runs", async () => {
    const { sandboxID, envdAccessToken = "" } = await asleep();
    const headers = { "x-access-token": envdAccessToken };
    await cluster.ask("POST", `/v2/sandboxes/${sandboxID}/connect`, { body: {} });
    expect(await visit(sandboxID, { headers })).toEqual({ status: 200, text: "inside /x" });
    await cluster.ask("DELETE", `/sandboxes/${sandboxID}`);
    expect(await visit(sandboxID, { headers })).toEqual(notFound(sandboxID));
  });

  test("holders learn it too when a resume failed on the node", async () => {
    const { sandboxID, envdAccessToken = "" } = await paused();
    cluster.agent.onStart = () => {
      throw new AppError("snapshot_corrupt", "a secret place is damaged");
    };
    expect(await visit(sandboxID, { headers: { "x-access-token": envdAccessToken } })).toEqual(isPaused(sandboxID));
  });
});

describe("signed file URLs", () => {
  test("resume their sandbox without any other mention of it", async () => {
    const { sandboxID, envdAccessToken = "" } = await paused();
    const response = await fetch(`${cluster.edgeUrl}${url(envdAccessToken)}`);
    expect([response.status, (await response.text()).startsWith("inside /files")]).toEqual([200, true]);
    expect((await read(sandboxID)).state).toBe("running");
  });

  test("resume it by host name too; a wrong signature resumes nothing", async () => {
    const { sandboxID, envdAccessToken = "" } = await paused();
    const wrong = url("0".repeat(64));
    expect((await fetch(`${cluster.edgeUrl}${wrong}`)).status).toBe(401);
    expect((await visit(sandboxID, { to: ENVD_PORT, path: wrong })).status).toBe(403);
    expect(cluster.agent.starts).toHaveLength(1);
    expect((await visit(sandboxID, { to: ENVD_PORT, path: url(envdAccessToken) })).status).toBe(200);
  });
});

describe("envd's token without any other mention of its sandbox", () => {
  const ask = async (token: string) => {
    const response = await fetch(`${cluster.edgeUrl}/health`, { headers: { "x-access-token": token } });
    return { status: response.status, text: await response.text() };
  };

  test("resumes it, and a wrong token resumes nothing", async () => {
    const { sandboxID, envdAccessToken = "" } = await paused();
    expect((await ask(`${envdAccessToken}x`)).status).toBe(502);
    expect(cluster.agent.starts).toHaveLength(1);
    expect(await ask(envdAccessToken)).toEqual({ status: 200, text: "inside /health" });
    expect((await read(sandboxID)).state).toBe("running");
  });

  test("says that it is paused where traffic does not resume it", async () => {
    const { sandboxID, envdAccessToken = "" } = await paused({ autoResume: { enabled: false } });
    expect(await ask(envdAccessToken)).toEqual(isPaused(sandboxID));
    expect(cluster.agent.starts).toHaveLength(1);
  });
});
