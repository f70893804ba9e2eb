/**
 * `npm run dev`: runs the control plane and the edge in one process on fakes, without Docker; restarts when a file changes.
 * Sandboxes can be created, listed and killed, but no program runs in them. The key is always the same, and so are the
 * ports while they are free: a shell with the printed settings works over restarts, also beside a running platform.
 */

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { hashApiKey } from "../../../shared/ids.ts";
import { startCluster } from "../../../test/support/cluster/cluster.ts";
import { freePorts } from "./free-ports.ts";

/** A fixed key, which gives access only to this cluster of fakes on 127.0.0.1. */
const KEY = `e2b_${"de0".repeat(13)}d`;

const [apiPort = 0, edgePort = 0] = await freePorts([3000, 3002]);
const cluster = await startCluster({
  logLevel: "info",
  onSqlite: true,
  config: { apiPort, edgePort, expiryEveryMs: 100 },
});
await cluster.database.query("update api_keys set hash = ?", hashApiKey(KEY));

const variables = execFileSync(
  fileURLToPath(new URL("../../host/services/client-variables", import.meta.url)),
  [cluster.url, cluster.edgeUrl, KEY, cluster.consoleUrl ?? ""],
  { encoding: "utf8" },
);

process.stdout.write(
  [
    "",
    `API          ${cluster.url}     documentation ${cluster.url}/docs`,
    `sandboxes    ${cluster.edgeUrl}`,
    `console      ${cluster.consoleUrl ?? "off"}     its page is that of the last \`npm run build -- console\``,
    "",
    ...variables
      .split("\n")
      .filter((line) => line.startsWith("E2B_"))
      .map((line) => `export ${line}`),
    "",
  ].join("\n"),
);

const stop = () => void cluster.stop().then(() => process.exit(0));
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
