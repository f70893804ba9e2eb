/** Requests a second through one edge program and through two, in front of one server that stands for a sandbox's. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { edgeToken } from "../../../shared/agent-api/joining/node-tokens.ts";
import { machineId as thisMachine } from "../../../shared/machine-id.ts";
import { NODE_KEY } from "../../support/cluster/cluster.ts";
import { startMortalOrchestrator } from "../../support/cluster/mortal-orchestrator.ts";
import { type EdgeProcess, startEdgeProcess } from "../../support/edges/edge-process.ts";
import { type LoadTarget, load } from "../load.ts";
import { type Row, row, summarise } from "../numbers.ts";
import { asking, create, newProject } from "./asking.ts";
import { coresFor, haveCores, UNLIMITED } from "./settings.ts";
import { startSimulatedNodes } from "./simulated-nodes.ts";

const CONNECTIONS = 32;
const ROUNDS = 3;
/** What two edges must carry beside one. */
const RATIO = 1.6;
/** Two edges, the server behind them, and this process with the load. */
const BUSY = 4;

const BACKEND = `
const body = Buffer.from("hello from the sandbox");
const server = require("node:http").createServer({ keepAliveTimeout: 60000 }, (request, response) => {
  response.writeHead(200, { "content-type": "text/plain", "content-length": body.length });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

export async function twoEdges({
  quick,
  say,
}: {
  readonly quick: boolean;
  readonly say: (line: string) => void;
}): Promise<Row> {
  const orchestrator = await startMortalOrchestrator({ ...UNLIMITED, SVC_EDGE: "off" }, { server: null });
  const asks = asking(1);
  const stops: (() => unknown)[] = [() => orchestrator.stop(), () => asks.stop()];
  try {
    // The sandbox is on the edges' machine, and so are its ports.
    const machineId = thisMachine() ?? "";
    const given = { urls: [orchestrator.url], nodeKey: NODE_KEY, machineId };
    const simulated = await startSimulatedNodes(1, given);
    stops.push(() => simulated.stop());
    const sandboxId = await create(asks.at(orchestrator.url, await newProject(asks, orchestrator.url)));
    const backend = await startBackend();
    stops.push(backend.stop);
    const settings = { SVC_ORCHESTRATOR_URL: orchestrator.url, SVC_EDGE_TOKEN: edgeToken(NODE_KEY) };
    const first = await startEdgeProcess(settings);
    stops.push(() => first.stop());
    const second = await startEdgeProcess(settings);
    stops.push(() => second.stop());

    const request = `GET / HTTP/1.1\r\nHost: bench\r\nE2b-Sandbox-Id: ${sandboxId}\r\nE2b-Sandbox-Port: ${backend.port}\r\n\r\n`;
    const to = ({ url }: EdgeProcess): LoadTarget => {
      const { hostname: host, port } = new URL(url);
      return { host, port: Number(port), request };
    };
    const through = async (edges: readonly EdgeProcess[], ms: number) => {
      const loads = await Promise.all(edges.map((edge) => load(to(edge), CONNECTIONS / edges.length, ms)));
      return loads.reduce((sum, { perSecond }) => sum + perSecond, 0);
    };
    await through([first, second], 1_000);
    const rates = { one: [] as number[], two: [] as number[] };
    // In turns, so that a busy moment of the machine hits both.
    for (let round = 1; round <= ROUNDS; round++) {
      say(`requests through one and two edges, ${round} of ${ROUNDS}`);
      rates.one.push(await through([first], quick ? 500 : 3_000));
      rates.two.push(await through([first, second], quick ? 500 : 3_000));
    }
    const [one, two] = [summarise(rates.one), summarise(rates.two)];
    const budget = { says: `≥ ${RATIO} x`, value: two.p50 / one.p50, limit: RATIO, better: "more" as const };
    return row({
      name: `two edges, ${CONNECTIONS} connections`,
      unit: "req/s",
      ours: two,
      baseline: { name: "one edge", ...one },
      // Programs that share a core carry together what one of them carries alone.
      budgets: haveCores(BUSY) ? [budget] : [],
      note: coresFor(BUSY),
    });
  } finally {
    for (const stop of stops.toReversed()) await stop();
  }
}

async function startBackend() {
  const child = spawn(process.execPath, ["-e", BACKEND], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { port: Number(port), stop: () => void child.kill() };
}
