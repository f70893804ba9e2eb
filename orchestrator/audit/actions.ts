/**
 * Which routes the audit log records, and what an entry says of each. A route that changes something and is in neither
 * list is recorded by what its path and method say. Pure.
 */

import { defined } from "../../shared/defined.ts";
import type { Route } from "../../shared/http/contract.ts";

export interface Action {
  readonly object: ObjectKind;
  /** The path parameter that is the object's id. */
  readonly param?: string;
  /** The table whose new row is the object, where the request adds it. */
  readonly table?: string;
  /** The request changes the database more than once: its first change is `begun`, and its end is an entry of its own. */
  readonly steps?: "several";
  /**
   * Fields of the body that are written as given: names, sizes, destinations; dots lead into objects. Never one that can
   * hold a secret. Of an address `url` its query is left out, where receivers keep tokens.
   */
  readonly fields?: readonly string[];
  /** The same of the answer. */
  readonly shown?: readonly string[];
}

type ObjectKind =
  | "sandbox"
  | "template"
  | "build"
  | "snapshot"
  | "volume"
  | "secret"
  | "webhook"
  | "key"
  | "node"
  | "edge"
  | "project"
  | "workspace"
  | "session"
  | "platform";

const sandbox = { object: "sandbox", param: "sandboxID" } as const;
const several = { steps: "several" } as const;
const create = {
  object: "sandbox",
  table: "sandboxes",
  fields: [
    "templateID",
    "timeout",
    "count",
    "autoPause",
    "onTimeout",
    "memory",
    "allow_internet_access",
    "network.allowOut",
    "network.denyOut",
    "network.allowPublicTraffic",
  ],
  shown: ["sandboxID", "templateID"],
  ...several,
} as const;
const connect = { ...sandbox, fields: ["timeout", "memory"], ...several } as const;
const template = { object: "template", param: "templateID" } as const;
const build = {
  object: "build",
  table: "builds",
  fields: ["name", "alias", "tags", "cpuCount", "memoryMB"],
  shown: ["templateID", "buildID"],
} as const;
const tags = { object: "template", fields: ["target", "name", "tags"] } as const;
const volume = { object: "volume", param: "volumeID" } as const;
const secret = { object: "secret", param: "secretID" } as const;
const webhook = { object: "webhook", param: "webhookID" } as const;
const key = { object: "key", param: "apiKeyID" } as const;
const projectById = { object: "project", param: "projectID" } as const;
const workspace = { object: "workspace", param: "workspaceID" } as const;
const project = { object: "project", param: "teamID" } as const;
const session = { object: "session", table: "console_sessions" } as const;

export const ACTIONS: Readonly<Record<string, Action>> = {
  createV1: create,
  create,
  kill: sandbox,
  connectV1: connect,
  connect,
  setTimeout: { ...sandbox, fields: ["timeout"] },
  refresh: { ...sandbox, fields: ["duration"] },
  pause: { ...sandbox, fields: ["memory"], ...several },
  resume: { ...sandbox, fields: ["timeout", "autoPause"], ...several },
  fork: { ...sandbox, fields: ["count", "timeout"], ...several },
  rewind: { ...sandbox, fields: ["snapshotID", "memory", "timeout"], ...several },
  updateNetwork: { ...sandbox, fields: ["allowOut", "denyOut", "allow_internet_access"], ...several },
  createSnapshot: { ...sandbox, fields: ["name"], shown: ["snapshotID"], ...several },
  deleteTemplate: { ...template, ...several },
  updateTemplateV1: { ...template, fields: ["public"] },
  updateTemplate: { ...template, fields: ["public", "warmPool"] },
  requestBuild: build,
  requestBuildV2: build,
  startBuild: { object: "build", param: "buildID", fields: ["fromImage", "fromTemplate", "force"] },
  assignTags: tags,
  deleteTags: tags,
  replaceAuthority: { object: "platform" },
  verifySnapshot: { object: "snapshot", param: "snapshotID" },
  cancelSnapshotCheck: { object: "snapshot", param: "snapshotID" },
  createVolume: { object: "volume", table: "volumes", fields: ["name"], shown: ["volumeID"] },
  deleteVolume: { ...volume, ...several },
  adoptVolume: { ...volume, fields: ["teamID", "name"] },
  deleteUnknownVolume: volume,
  createSecret: { object: "secret", table: "secrets", fields: ["name"], shown: ["secretID"] },
  updateSecret: secret,
  deleteSecret: secret,
  createWebhook: { object: "webhook", table: "webhooks", fields: ["name", "url", "enabled", "events"], shown: ["id"] },
  updateWebhook: { ...webhook, fields: ["name", "url", "enabled", "events"] },
  deleteWebhook: webhook,
  testWebhook: webhook,
  redeliver: { object: "webhook", param: "webhookID" },
  createKey: { object: "key", table: "api_keys", fields: ["name", "scopes", "expiresAt"], shown: ["id"] },
  renameKey: { ...key, fields: ["name", "scopes", "expiresAt"] },
  deleteKey: key,
  createJoinToken: { object: "node", table: "join_tokens", fields: ["kind"], shown: ["id"] },
  revokeJoinToken: { object: "node", param: "joinTokenID" },
  removeEdge: { object: "edge", param: "edgeID" },
  setNodeStatus: { object: "node", param: "nodeID", fields: ["status"] },
  drainNode: { object: "node", param: "nodeID", fields: ["deadlineSeconds", "running", "atDeadline"], ...several },
  removeNode: {
    object: "node",
    param: "nodeID",
    shown: ["sandboxes", "pausedSandboxes", "snapshots", "volumes", "templates"],
    ...several,
  },
  adoptNode: { object: "node", param: "nodeID", fields: ["projectID"], shown: ["imported", "corrected"], ...several },
  discardNode: { object: "node", param: "nodeID" },
  takeBack: { object: "node", param: "nodeID", fields: ["projectID"], shown: ["imported", "corrected"], ...several },
  createProject: {
    object: "project",
    table: "projects",
    fields: ["name", "slug", "region", "nodeLabels", "workspaceID", "limits"],
    shown: ["teamID", "projectID"],
  },
  changeProject: { ...projectById, fields: ["name", "nodeLabels", "workspaceID", "limits"] },
  disableProject: { ...projectById, fields: ["reason"] },
  banProject: { ...projectById, fields: ["reason"] },
  enableProject: projectById,
  deleteProject: { ...projectById, ...several },
  createWorkspace: { object: "workspace", table: "workspaces", fields: ["name"], shown: ["workspaceID"] },
  renameWorkspace: { ...workspace, fields: ["name"] },
  deleteWorkspace: workspace,
  rewrapSecrets: { object: "platform", shown: ["currentKeyID", "rewrapped", "failed", "done"], ...several },
  rotateIdentityKey: { object: "platform", fields: ["revoke"] },
  killTeamSandboxes: { ...project, shown: ["killedCount", "failedCount"], ...several },
  cancelBuilds: { ...project, shown: ["cancelledCount", "failedCount"], ...several },
  collectBuilds: { object: "platform", fields: ["dryRun", "keepHours"], ...several },
  promoteTemplate: { object: "template", fields: ["templateID", "name"] },
  createTeamKey: { object: "key", table: "api_keys", fields: ["name", "scopes", "expiresAt"], shown: ["id"] },
  deleteTeamKey: key,
  /** Of the console, which are no routes of the API. */
  logIn: session,
  logOut: session,
  makeLogInLink: session,
  /** Files of COPY steps, which are not in the database: its entry is not part of a change. */
  uploadFiles: { object: "template", param: "templateId" },
};

/** Routes that write nothing although their method could, with the reason. */
export const UNRECORDED: Readonly<Record<string, string>> = {
  createTemplateV1: "answers 410 to every caller",
  rebuildTemplateV1: "answers 410 to every caller",
  startBuildV1: "answers 410 to every caller",
  createAccessToken: "answers 410 to every caller",
  deleteAccessToken: "answers 410 to every caller",
};

/**
 * Undefined: the route is not recorded. Reads are not, nor are the reports of nodes: the ends of sandboxes that follow
 * from a report are entries of their own.
 */
export function actionOf(operation: string, route: Route): Action | undefined {
  if (route.method === "GET" || route.access === "node" || UNRECORDED[operation] !== undefined) return undefined;
  const known = ACTIONS[operation];
  if (known !== undefined) return known;
  const param = /\{(\w+)\}(?!.*\{)/.exec(route.path)?.[1];
  return { object: "platform", ...defined({ param }), ...several };
}

const MAX_TEXT = 256;
const MAX_LIST = 16;

/** The fields that are plain text, numbers, booleans, short lists of text, or numbers by name; the rest is left out. */
export function plainFields(value: unknown, names: readonly string[] = []): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const name of names) {
    const field = plain(at(value, name.split(".")));
    if (field !== undefined) found[name] = name === "url" && typeof field === "string" ? withoutQuery(field) : field;
  }
  return found;
}

function at(value: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return value;
  if (typeof value !== "object" || value === null) return undefined;
  return at((value as Readonly<Record<string, unknown>>)[name], rest);
}

function plain(value: unknown): unknown {
  if (typeof value === "string") return cut(value);
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (Array.isArray(value)) {
    return value.every((item) => typeof item === "string") ? value.slice(0, MAX_LIST).map(cut) : undefined;
  }
  return typeof value === "object" && value !== null && isNumbers(value) ? value : undefined;
}

/** Such as the limits of a project, of which null takes one back. */
function isNumbers(value: object): boolean {
  const items: readonly unknown[] = Object.values(value);
  return items.length <= MAX_LIST && items.every((item) => item === null || typeof item === "number");
}

function withoutQuery(url: string): string {
  const start = url.indexOf("?");
  return start < 0 ? url : `${url.slice(0, start)}?…`;
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
