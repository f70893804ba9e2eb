/** Liveness, readiness, version, and what operators' tools read. */

import { Type } from "typebox";
import { contract } from "../http/contract.ts";

const common = { tag: "Operations", access: "none", method: "GET" } as const;

export const healthApi = contract({
  health: { ...common, path: "/health", summary: "Is the service up?", status: 204 },
  live: { ...common, path: "/livez", summary: "Is the process alive?", status: 204 },
  ready: {
    ...common,
    path: "/readyz",
    summary: "Can it serve? Database, migrations, at least one ready node",
    query: Type.Object({ verbose: Type.Optional(Type.String()) }),
    status: 200,
    reply: Type.Object({ ready: Type.Boolean(), checks: Type.Optional(Type.Record(Type.String(), Type.String())) }),
    errors: [503],
  },
  version: {
    ...common,
    path: "/version",
    summary: "Versions of the platform and of envd",
    status: 200,
    reply: Type.Object({ version: Type.String(), commit: Type.String(), envdVersion: Type.String() }),
  },
});
