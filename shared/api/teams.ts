/** Teams (projects) and API keys on the public API. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { SCOPES } from "../http/scopes.ts";
import { messages, nullable, TeamId, Timestamp, UnixSeconds } from "./common.ts";

export const byTeam = Type.Object({ teamID: TeamId });

const Scopes = Type.Array(Type.Enum([...SCOPES]), {
  minItems: 1,
  maxItems: SCOPES.length,
  uniqueItems: true,
  description: "What the key may do; a new key may do all of it when absent",
});

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
  scopes: Scopes,
  expiresAt: Type.Optional(nullable(Timestamp)),
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
  ...messages({ pattern: "{field} must not be blank or have control characters" }),
});
const ExpiresAt = Type.String({
  format: "date-time",
  maxLength: 64,
  description: "The key stops working at this time, which is in the future; a new key never when absent",
});
/** A change of a key leaves scopes and expiry as they are where they are absent. */
export const NewKey = Type.Object({
  name: DisplayName,
  scopes: Type.Optional(Scopes),
  expiresAt: Type.Optional(ExpiresAt),
});
export type NewKey = Static<typeof NewKey>;

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
        apiKey: Type.String({
          description: "With SVC_CLI_LOGIN a new key for the CLI, which replaces its former one; otherwise empty",
        }),
        isDefault: Type.Boolean(),
      }),
    ),
    errors: [401],
  },
});

/** Beginning of a step of time, and what the project used in it. Everything but the two of the contract is an extension. */
const TeamMetric = Type.Object({
  ...metric,
  concurrentSandboxes: Type.Integer({ description: "Most sandboxes that ran at the same time" }),
  sandboxStartRate: Type.Number({ description: "Sandboxes created or resumed, a second" }),
  cpuUsed: Type.Number({ description: "Processors in use, on average" }),
  memUsed: Type.Integer({ description: "Most bytes of memory in use" }),
  diskUsed: Type.Integer({ description: "Most bytes of disk in use by running sandboxes" }),
  bytesSent: Type.Integer({ description: "Bytes that left the sandboxes" }),
  bytesReceived: Type.Integer(),
});

export const teamMetricsApi = contract({
  teamMetrics: {
    method: "GET",
    path: "/teams/{teamID}/metrics",
    summary: "Concurrent sandboxes and start rate over time",
    tag: "Teams",
    access: "project",
    params: byTeam,
    query: Type.Object(window),
    status: 200,
    reply: Type.Array(TeamMetric),
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
    access: "project",
    status: 200,
    reply: Type.Array(TeamApiKey),
    errors: [401],
  },
  createKey: {
    method: "POST",
    path: "/api-keys",
    summary: "Create an API key",
    tag: "API keys",
    access: "project",
    body: NewKey,
    status: 201,
    reply: CreatedTeamApiKey,
    errors: [400, 401],
  },
  renameKey: {
    method: "PATCH",
    path: "/api-keys/{apiKeyID}",
    summary: "Rename an API key, or change its scopes or its expiry, at once",
    tag: "API keys",
    access: "project",
    params: byKey,
    body: NewKey,
    status: 200,
    errors: [400, 401, 404],
  },
  deleteKey: {
    method: "DELETE",
    path: "/api-keys/{apiKeyID}",
    summary: "Revoke an API key, at once",
    tag: "API keys",
    access: "project",
    params: byKey,
    status: 204,
    errors: [401, 404],
  },
});
