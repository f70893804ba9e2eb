/**
 * `npm run dev`: the control plane and the edge in one process on fakes, no Docker needed; restarts when a file changes.
 * Sandboxes are created, listed and killed for real, but nothing runs in them.
 */

import { startCluster } from "../test/support/cluster.ts";

const cluster = await startCluster({
  logLevel: "info",
  config: { apiPort: 3000, edgePort: 3002, expiryEveryMs: 100 },
});

process.stdout.write(
  [
    "",
    `API          ${cluster.url}     documentation ${cluster.url}/docs`,
    `sandboxes    ${cluster.edgeUrl}`,
    "",
    `export E2B_API_URL=${cluster.url}`,
    `export E2B_SANDBOX_URL=${cluster.edgeUrl}`,
    // Clients of E2B check the prefix; it is the same key under both.
    `export E2B_API_KEY=${cluster.key.replace(/^svc_/, "e2b_")}`,
    "",
  ].join("\n"),
);

const stop = () => void cluster.stop().then(() => process.exit(0));
process.once("SIGINT", stop);
process.once("SIGTERM", stop);
