/**
 * `npm run bench:scale`: what many nodes and many records cost the orchestrator. The orchestrator and its database are real,
 * the nodes are simulated in this process. It needs no Docker and no running platform.
 */

import { writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { startPostgres } from "../../support/postgres/cluster.ts";
import { type Row, table } from "../numbers.ts";
import { orchestrating } from "./orchestrating.ts";
import { placing } from "./placing.ts";
import { twoEdges } from "./two-edges.ts";
import { twoOrchestrators } from "./two-orchestrators.ts";

const STORES = ["sqlite", "postgres"];
const USAGE = `npm run bench:scale -- [--quick] [--nodes 1000] [--records 100000] [--only ${STORES.join(",")}] [--out scale-results.json]`;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    nodes: { type: "string" },
    records: { type: "string" },
    only: { type: "string", default: STORES.join(",") },
    out: { type: "string", default: "scale-results.json" },
    help: { type: "boolean", default: false },
  },
});
const nodes = Number(values.nodes ?? (values.quick ? 50 : 1_000));
const records = Number(values.records ?? (values.quick ? 2_000 : 100_000));
const only = values.only.split(",");
if (values.help || !(nodes > 0) || !(records > 0) || only.some((name) => !STORES.includes(name))) {
  console.log(USAGE);
  process.exit(values.help ? 0 : 2);
}

const say = (line: string) => void process.stderr.write(`${line}\n`);
const rows: Row[] = [placing(nodes)];
for (const store of only) {
  const server = store === "postgres" ? await startPostgres({ durable: true }) : undefined;
  try {
    rows.push(...(await orchestrating({ store, server: server?.url ?? null, nodes, records, say })));
    if (server !== undefined) rows.push(await twoOrchestrators(server.url, { quick: values.quick, say }));
  } finally {
    await server?.stop();
  }
}
rows.push(await twoEdges({ quick: values.quick, say }));
console.log(`\n${table(rows)}\n`);
const machine = { cores: cpus().length, processor: cpus()[0]?.model };
await writeFile(
  values.out,
  `${JSON.stringify({ at: new Date().toISOString(), nodes, records, machine, rows }, null, 2)}\n`,
);
console.log(`Written to ${values.out}.`);
