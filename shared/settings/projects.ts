/** Settings of projects: what each may have unless it has limits of its own, and what it may be told. */

import { Type } from "typebox";
import { limit } from "./schemas.ts";

export const projectSettings = {
  maxProjectBuilds: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 10_000,
    description: "Most builds at once of a project",
  }),
  maxProjectStartsPerMinute: limit(1, "Most sandboxes that a project starts in a minute"),
  maxProjectCpu: limit(1, "Most CPU cores of a project's running sandboxes together"),
  maxProjectMemoryMb: limit(128, "Most memory of a project's running sandboxes together, MiB"),
  maxProjectDiskMb: limit(0, "Most disk of a project's running sandboxes together, MiB"),
  maxProjectSnapshots: limit(0, "Most snapshots of a project"),
  maxProjectVolumes: Type.Integer({
    default: 20,
    minimum: 0,
    maximum: 100_000,
    description: "Most volumes of a project, unless the project has a limit of its own",
  }),
  maxSandboxEgressRules: limit(0, "Most destinations that the network options of one sandbox name"),
  supportContact: Type.String({
    default: "the operator of this platform",
    minLength: 1,
    maxLength: 256,
    pattern: "^[^\\u0000-\\u001f\\u007f]+$",
    description: "Whom messages about limits tell users to ask, for example an address",
  }),
  regions: Type.String({
    default: "US,EU,APAC",
    maxLength: 1024,
    pattern: "^[A-Za-z0-9_, -]*$",
    description: "Regions that projects may be created in, comma-separated; nodes name theirs in SVC_NODE_REGION",
  }),
  cliLogin: Type.Boolean({
    default: false,
    description:
      "GET /teams with the admin token makes a key named 'e2b CLI' for each project, which replaces its former one",
  }),
};
