/** Settings of nodes: where they report to, when they are lost, and how much they promise. */

import { Type } from "typebox";
import { ms } from "./schemas.ts";

export const nodeSettings = {
  nodesHost: Type.String({
    default: "127.0.0.1",
    description: "Address that nodes on other machines report to, with TLS",
  }),
  nodesPort: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65_535,
      description: "Port that nodes on other machines report to, with TLS; 0 picks a free one. Default: none",
    }),
  ),
  baseArchives: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        "Directory with the archive of the base template's image, which a machine that joins takes from here. Default: none",
    }),
  ),
  orphanGraceMs: ms(60_000, "How long a node may run a sandbox that no record names"),
  missingGraceMs: ms(10_000, "How long a record may name a sandbox that its node does not report"),
  nodeTimeoutMs: ms(20_000, "Time without a report after which a node is unhealthy"),
  nodeLostMs: ms(
    90_000,
    "Time without a report to any orchestrator after which a node's sandboxes are lost; at least SVC_NODE_TIMEOUT_MS",
  ),
  nodeCpuOvercommit: Type.Number({
    default: 50,
    minimum: 1,
    maximum: 1000,
    description: "Promised cores per real core; a core is a ceiling, not a reservation",
  }),
  nodeMemoryOvercommit: Type.Number({
    default: 8,
    minimum: 1,
    maximum: 64,
    description: "Promised memory per real byte; sandboxes rarely use their limit",
  }),
  nodeDiskOvercommit: Type.Number({
    default: 50,
    minimum: 1,
    maximum: 1000,
    description:
      "Promised disk per byte that a node's sandboxes use or that is free above its reserve; a size is a ceiling, not a reservation",
  }),
};
