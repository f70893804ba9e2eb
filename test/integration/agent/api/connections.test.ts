/**
 * Many connections without credentials to the agent's API: how many each client gets, and that the orchestrator still gets
 * in.
 */

import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createInstruments } from "../../../../agent/api/prometheus.ts";
import { startApi } from "../../../../agent/api/start-api.ts";
import { AgentConfig } from "../../../../agent/config.ts";
import { peeringByTokens } from "../../../../agent/joining/peering.ts";
import { agentApi } from "../../../../shared/agent-api/routes.ts";
import { type Connection, connect as connectApi } from "../../../../shared/http/client.ts";
import { readConfig } from "../../../../shared/program/config.ts";
import { createLog } from "../../../../shared/program/log.ts";
import { Teardown } from "../../../../shared/program/teardown.ts";
import { fakeDisks } from "../../../support/fakes/fake-machine.ts";

/** Shorter than the server's limit for the head of a request, at which it closes all of these connections. */
const WAIT = { timeout: 12_000 };
const TOKEN = "orchestrator-token-of-the-test";
/** The API gets an eighth of the descriptors for connections, and one address gets a quarter of that. */
const DESCRIPTORS = 320;
const [TOTAL, PER_ADDRESS] = [40, 10];

const log = createLog({ component: "test", level: "silent" });
const teardown = new Teardown(log);
let port: number;
let orchestrator: Connection<typeof agentApi>;

beforeAll(async () => {
  const config = readConfig(AgentConfig, {
    SVC_AGENT_PORT: "0",
  });
  const instruments = createInstruments({
    nodeId: "n1",
    running: () => 0,
    starting: () => 0,
    held: () => 0,
    withoutLease: () => 0,
    disks: () => undefined,
    sandboxDisk: () => undefined,
    diskWork: fakeDisks.work,
    fetchedDisks: () => 0,
    stored: () => ({ storedBytes: 0, quotaBytes: 0 }),
    blobTraffic: () => ({ to_store: 0, from_store: 0, to_nodes: 0, from_nodes: 0 }),
    uploads: () => ({}),
    certificateUntil: undefined,
    pools: () => [],
    poolAccount: () => ({ asked: [], usedBytes: 0, boundBytes: 0 }),
    slots: () => 0,
    pendingRemovals: () => 0,
    placeholderUses: () => ({ used: 0, missing: 0, refused: 0, unavailable: 0 }),
    orchestratorReached: () => true,
    memoryKills: () => 0,
    egress: () => ({ decisions: new Map(), sentBytes: 0, receivedBytes: 0 }),
    hostLimits: () => ({}),
    ways: () => new Map(),
    findings: () => [],
    volumes: () => [],
    volumeRequests: () => 0,
  });
  // The only route that the test calls returns usage samples.
  const unused = {} as never;
  const api = await startApi(
    {
      identity: { nodeId: "n1", serviceInstanceId: "run" },
      sandboxes: unused,
      taker: unused,
      snapshots: unused,
      arrivals: unused,
      imageArrivals: unused,
      offers: unused,
      snapshotChecks: unused,
      collecting: unused,
      builds: unused,
      listGarbage: unused,
      doctor: unused,
      holdings: unused,
      holding: unused,
      serving: { admit: () => Promise.resolve(), adopt: () => undefined },
      volumes: unused,
      volumeFiles: unused,
      refusal: unused,
      samples: unused,
      logs: unused,
      networkLog: unused,
      replaceEgress: unused,
      egress: unused,
      reach: unused,
      usage: { latest: () => undefined },
      instruments,
      config,
      peering: peeringByTokens({ nodeToken: "node-token-of-the-test", orchestratorToken: TOKEN }, []),
      checks: () => ({}),
      lastReport: () => 7,
      descriptors: DESCRIPTORS,
      log,
    },
    teardown,
  );
  api.start();
  port = Number(new URL(api.url).port);
  orchestrator = connectApi(agentApi, {
    url: api.url,
    name: "agent",
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  teardown.add("orchestrator", () => orchestrator.close());
});
afterAll(() => teardown.run());

/** Opens a connection from an address of the machine's own network that no program of the platform uses. */
function idle(localAddress: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined).resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

const open = (sockets: readonly Socket[]) => sockets.filter(({ closed }) => !closed).length;

test("connections to the agent's API that say nothing are few for one address, and another address gets in", async () => {
  const flood = Array.from({ length: 30 }, () => idle("127.0.0.2"));
  await expect.poll(() => open(flood), WAIT).toBe(PER_ADDRESS);
  const other = idle("127.0.0.3");
  other.write("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n");
  let text = "";
  other.on("data", (chunk) => (text += chunk.toString()));
  await expect.poll(() => text, WAIT).toMatch(/^HTTP\/1.1 200/);
});

test("connections to the agent's API from many addresses neither cut the orchestrator off nor keep it out", async () => {
  const kept = idle("127.0.0.4");
  let answers = "";
  kept.on("data", (chunk) => (answers += chunk.toString()));
  const ask = () => {
    const body = '{"executionIds":[]}';
    const { method, path } = agentApi.latestMetrics;
    kept.write(
      `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKEN}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  };
  const answered = () => answers.match(/HTTP\/1\.1 200/g)?.length ?? 0;
  ask();
  await expect.poll(answered, WAIT).toBe(1);
  const flood = Array.from({ length: 200 }, (_, index) => idle(`127.0.1.${1 + (index % 100)}`));
  await expect.poll(() => open(flood), WAIT).toBeLessThan(TOTAL);
  const calls = Array.from({ length: 10 }, () => orchestrator.call.latestMetrics({ body: { executionIds: [] } }));
  expect(await Promise.all(calls)).toEqual(calls.map(() => ({})));
  ask();
  await expect.poll(answered, WAIT).toBe(2);
});

test("readiness names the time of the last report, so that a reader knows how old it is", async () => {
  const { headers } = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect(headers.get("x-last-report")).toBe("7");
});
