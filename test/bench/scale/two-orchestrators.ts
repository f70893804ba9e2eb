/** Creates a second through one orchestrator and through two on one PostgreSQL database. */

import { NODE_KEY } from "../../support/cluster/cluster.ts";
import { startMortalOrchestrator } from "../../support/cluster/mortal-orchestrator.ts";
import { type Row, row, summarise } from "../numbers.ts";
import { asking, createsBySecond, newProject } from "./asking.ts";
import { coresFor, UNLIMITED } from "./settings.ts";
import { startSimulatedNodes } from "./simulated-nodes.ts";

/** Requests under way at a time, through one orchestrator or divided between two. */
const AT_ONCE = 32;
const CREATES = 1_000;
const ROUNDS = 3;
const NODES = 50;
/** Two orchestrators, the database, and this process with the nodes and the callers. */
const BUSY = 4;

/** @param server the URL of a PostgreSQL server */
export async function twoOrchestrators(
  server: string,
  { quick, say }: { readonly quick: boolean; readonly say: (line: string) => void },
): Promise<Row> {
  const count = quick ? CREATES / 10 : CREATES;
  const first = await startMortalOrchestrator(UNLIMITED, { server });
  const asks = asking(AT_ONCE);
  try {
    const second = await startMortalOrchestrator(UNLIMITED, { beside: first });
    try {
      const urls = [first.url, second.url];
      const own = await newProject(asks, first.url);
      const simulated = await startSimulatedNodes(NODES, { urls, nodeKey: NODE_KEY });
      try {
        const callers = Array.from({ length: AT_ONCE }, (_, index) => asks.at(urls[index % 2] ?? "", own));
        const ofOne = callers.map(() => asks.at(first.url, own));
        const rates = { one: [] as number[], two: [] as number[] };
        await createsBySecond(callers, AT_ONCE * 2);
        // In turns, so that a busy moment of the machine hits both.
        for (let round = 1; round <= ROUNDS; round++) {
          say(`postgres: creates through one and two orchestrators, ${round} of ${ROUNDS}`);
          rates.one.push(await createsBySecond(ofOne, count));
          rates.two.push(await createsBySecond(callers, count));
        }
        return row({
          name: `creates, ${AT_ONCE} at once, two orchestrators`,
          unit: "req/s",
          ours: summarise(rates.two),
          baseline: { name: "one orchestrator", ...summarise(rates.one) },
          budgets: [],
          note: `postgres, ${NODES} nodes; ${coresFor(BUSY)}`,
        });
      } finally {
        await simulated.stop();
      }
    } finally {
      await second.stop();
    }
  } finally {
    asks.stop();
    await first.stop();
  }
}
