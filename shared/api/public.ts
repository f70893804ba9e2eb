/** The whole public API, in the order of the documentation. */

import type { Contract } from "../http/contract.ts";
import { adminApi } from "./admin.ts";
import { adminAuditApi, auditApi } from "./audit.ts";
import { buildApi, removedApi } from "./builds.ts";
import { dashboardApi } from "./dashboard.ts";
import { webhookApi } from "./events/webhooks.ts";
import { eventApi } from "./events.ts";
import { healthApi } from "./health.ts";
import { discoveryApi, identityAdminApi } from "./identity/identity.ts";
import { authorityRotationApi } from "./keys/authority-rotation.ts";
import { rotationApi } from "./keys/rotation.ts";
import { nodeDoctorApi } from "./nodes/doctor.ts";
import { drainApi } from "./nodes/drains.ts";
import { edgesApi } from "./nodes/edges.ts";
import { joinTokenApi } from "./nodes/join-tokens.ts";
import { nodeStoreApi, nodesApi } from "./nodes/nodes.ts";
import { adminSandboxApi } from "./projects/all-sandboxes.ts";
import { projectAdminApi, projectApi, workspaceApi } from "./projects/projects.ts";
import { sandboxNetworkApi } from "./sandboxes/sandbox-network.ts";
import { sandboxStateApi } from "./sandboxes/sandbox-states.ts";
import { sandboxApi } from "./sandboxes/sandboxes.ts";
import { secretApi, secretKeyApi } from "./secrets.ts";
import { snapshotApi } from "./snapshots.ts";
import { storageApi, unknownVolumeApi } from "./storage.ts";
import { snapshotCheckApi } from "./stored/snapshot-checks.ts";
import { keyApi, teamApi, teamMetricsApi } from "./teams.ts";
import { tagApi, templateApi, templateChangeApi } from "./templates.ts";
import { volumeContentApi } from "./volumes/content.ts";
import { volumeApi } from "./volumes/volumes.ts";

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
  ...nodeStoreApi,
  ...nodeDoctorApi,
  ...drainApi,
  ...joinTokenApi,
  ...edgesApi,
  ...projectApi,
  ...projectAdminApi,
  ...workspaceApi,
  ...adminApi,
  ...adminSandboxApi,
  ...snapshotCheckApi,
  ...storageApi,
  ...unknownVolumeApi,
  ...secretKeyApi,
  ...rotationApi,
  ...authorityRotationApi,
  ...auditApi,
  ...adminAuditApi,
  ...identityAdminApi,
  ...discoveryApi,
  ...healthApi,
  ...dashboardApi,
  ...removedApi,
} satisfies Contract;

/** With the routes that other credentials open: what the documents describe. */
export const describedApi = { ...publicApi, ...volumeContentApi } satisfies Contract;
