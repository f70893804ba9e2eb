/** Teams (projects) and API keys on the public API. */

import { type Static, Type } from "typebox";
import { contract, notImplemented } from "../http/contract.ts";
import { nullable, TeamId, Timestamp, UnixSeconds } from "./common.ts";

export const byTeam = Type.Object({ teamID: TeamId });

export const TeamApiKey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  mask: Type.Object({
    prefix: Type.String(),
    valueLength: Type.Integer(),
    maskedValuePrefix: Type.String(),
    maskedValueSuffix: Type.String(),
  }),
  createdAt: Timestamp,
  createdBy: Type.Optional(nullable(Type.Object({ id: Type.String(), email: nullable(Type.String()) }))),
  lastUsed: Type.Optional(nullable(Timestamp)),
});
export type TeamApiKey = Static<typeof TeamApiKey>;

export const CreatedTeamApiKey = Type.Object({
  ...TeamApiKey.properties,
  key: Type.String({ description: "Shown this once" }),
});

/** A name for people: any printable text. */
export const DisplayName = Type.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f]+$",
  description: "Not blank, no control characters",
});
export const KeyName = Type.Object({ name: DisplayName });

const window = { start: Type.Optional(UnixSeconds), end: Type.Optional(UnixSeconds) };
const metric = { timestamp: Timestamp, timestampUnix: Type.Integer() };

export const teamApi = contract({
  listTeams: {
    method: "GET",
    path: "/teams",
    summary: "List the projects of the caller",
    tag: "Teams",
    access: "bearer",
    status: 200,
    reply: Type.Array(
      Type.Object({
        teamID: Type.String(),
        name: Type.String(),
        apiKey: Type.String({ description: "Always empty: only the answer to its creation shows a key" }),
        isDefault: Type.Boolean(),
      }),
    ),
    errors: [401],
  },
});

export const teamMetricsApi = notImplemented({
  teamMetrics: {
    method: "GET",
    path: "/teams/{teamID}/metrics",
    summary: "Concurrent sandboxes and start rate over time",
    tag: "Teams",
    access: "project",
    params: byTeam,
    query: Type.Object(window),
    status: 200,
    reply: Type.Array(Type.Object({ ...metric, concurrentSandboxes: Type.Integer(), sandboxStartRate: Type.Number() })),
    errors: [400, 401, 403],
  },
  teamMetricsMax: {
    method: "GET",
    path: "/teams/{teamID}/metrics/max",
    summary: "The highest value of one metric",
    tag: "Teams",
    access: "project",
    params: byTeam,
    query: Type.Object({ ...window, metric: Type.Enum(["concurrent_sandboxes", "sandbox_start_rate"]) }),
    status: 200,
    reply: Type.Object({ ...metric, value: Type.Number() }),
    errors: [400, 401, 403],
  },
});

const byKey = Type.Object({ apiKeyID: Type.String({ format: "uuid" }) });

export const keyApi = contract({
  listKeys: {
    method: "GET",
    path: "/api-keys",
    summary: "List API keys, masked",
    tag: "API keys",
    access: "team",
    status: 200,
    reply: Type.Array(TeamApiKey),
    errors: [401],
  },
  createKey: {
    method: "POST",
    path: "/api-keys",
    summary: "Create an API key",
    tag: "API keys",
    access: "team",
    body: KeyName,
    status: 201,
    reply: CreatedTeamApiKey,
    errors: [400, 401],
  },
  renameKey: {
    method: "PATCH",
    path: "/api-keys/{apiKeyID}",
    summary: "Rename an API key",
    tag: "API keys",
    access: "team",
    params: byKey,
    body: KeyName,
    status: 200,
    errors: [400, 401, 404],
  },
  deleteKey: {
    method: "DELETE",
    path: "/api-keys/{apiKeyID}",
    summary: "Revoke an API key, at once",
    tag: "API keys",
    access: "team",
    params: byKey,
    status: 204,
    errors: [401, 404],
  },
});
