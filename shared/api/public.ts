/** The whole public API, in the order of the documentation. */

import type { Contract } from "../http/contract.ts";
import { adminApi, nodesApi } from "./admin.ts";
import { buildApi, removedApi } from "./builds.ts";
import { eventApi, webhookApi } from "./events.ts";
import { healthApi } from "./health.ts";
import { sandboxNetworkApi } from "./sandboxes/sandbox-network.ts";
import { sandboxApi, sandboxStateApi } from "./sandboxes/sandboxes.ts";
import { secretApi } from "./secrets.ts";
import { snapshotApi } from "./snapshots.ts";
import { storageApi } from "./storage.ts";
import { keyApi, teamApi, teamMetricsApi } from "./teams.ts";
import { tagApi, templateApi, templateChangeApi } from "./templates.ts";
import { volumeApi } from "./volumes.ts";

export const publicApi = {
  ...sandboxApi,
  ...sandboxStateApi,
  ...sandboxNetworkApi,
  ...snapshotApi,
  ...templateApi,
  ...templateChangeApi,
  ...buildApi,
  ...tagApi,
  ...volumeApi,
  ...secretApi,
  ...eventApi,
  ...webhookApi,
  ...teamApi,
  ...teamMetricsApi,
  ...keyApi,
  ...nodesApi,
  ...adminApi,
  ...storageApi,
  ...healthApi,
  ...removedApi,
} satisfies Contract;
