/** Bodies and replies of the sandbox routes. */

import { type Static, Type } from "typebox";
import { EndReason } from "../../states/end-reason.ts";
import {
  INT32,
  inSeconds,
  Metadata,
  map,
  messages,
  nullable,
  open,
  otherNames,
  TemplateReference,
  Timestamp,
} from "../common.ts";
import { Iam } from "../identity/iam.ts";
import { NetworkOptions, NetworkShown } from "../network.ts";
import { Place } from "../stored/place.ts";

/** Only above zero, in the contract's words (create, connect v2, resume, fork). */
export const timeout = Type.Integer({
  minimum: 1,
  maximum: INT32,
  description: "Seconds from now until the sandbox expires",
  ...messages({ minimum: "Timeout must be greater than 0" }),
});

const EnvVars = map(Type.String({ maxLength: 131_071, pattern: "^[^\\u0000]*$" }), {
  names: Type.String({ minLength: 1, maxLength: 256, pattern: "^[^=\\u0000]+$" }),
  maxProperties: 1024,
  description: "Environment of every process of the sandbox",
});

const VolumeMount = Type.Object({ name: Type.String(), path: Type.String() });

const createFields = {
  templateID: TemplateReference,
  metadata: Type.Optional(Metadata),
  mcp: Type.Optional(
    nullable(Type.Object({}, { ...open, description: "Accepted and ignored: the SDK starts the gateway" })),
  ),
  envVars: Type.Optional(EnvVars),
  timeout: Type.Optional(timeout),
  cpuCount: Type.Optional(
    Type.Integer({ minimum: 1, maximum: INT32, description: "CPU cores; the template's when left out" }),
  ),
  memoryMB: Type.Optional(
    Type.Integer({ minimum: 128, maximum: INT32, description: "Memory in MiB; the template's when left out" }),
  ),
  memory: Type.Optional(
    Type.Boolean({
      default: true,
      description: "false: from the disk of a template or snapshot alone, without its stored memory",
      ...messages({
        type: "body field 'memory' must be true or false: whether stored memory is restored; 'memoryMB' is the size",
      }),
    }),
  ),
  count: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 1,
      description: "Above 1: so many sandboxes, answered as those of a fork, a sandbox or an error each",
    }),
  ),
  allow_internet_access: Type.Optional(Type.Boolean()),
  network: Type.Optional(NetworkOptions),
  iam: Type.Optional(Iam),
  autoPause: Type.Optional(Type.Boolean()),
  autoPauseMemory: Type.Optional(Type.Boolean({ description: "false needs autoPause and excludes autoResume" })),
  autoResume: Type.Optional(Type.Object({ enabled: Type.Boolean() })),
  onTimeout: Type.Optional(Type.Enum(["kill", "pause"], { description: "The same as autoPause, as a word" })),
  onResume: Type.Optional(Type.Enum(["restore", "reboot"], { description: "What a later connect restores" })),
  // The handler checks names and paths, so that one error names every wrong entry.
  volumeMounts: Type.Optional(
    Type.Array(VolumeMount, {
      maxItems: 64,
      description:
        "Volumes of the project, by name, and where the sandbox sees them; left out: those of the snapshot it starts from",
    }),
  ),
  secure: Type.Optional(Type.Boolean({ description: "Accepted and ignored: every sandbox is secured" })),
};

const LIFECYCLE = "`autoPause`, `autoPauseMemory` and `autoResume`";

export const CreateBody = Type.Object(createFields, {
  ...open,
  ...otherNames({
    ...inSeconds,
    template: "`templateID`",
    envs: "`envVars`",
    env: "`envVars`",
    internetAccess: "`allow_internet_access`",
    lifecycle: LIFECYCLE,
    keepMemory: "`autoPauseMemory`",
    volumes: "`volumeMounts`",
    mounts: "`volumeMounts`",
  }),
});
export type CreateBody = Static<typeof CreateBody>;

export const Sandbox = Type.Object({
  templateID: Type.String(),
  sandboxID: Type.String(),
  clientID: Type.String({ deprecated: true }),
  envdVersion: Type.String(),
  alias: Type.Optional(Type.String()),
  envdAccessToken: Type.Optional(Type.String()),
  trafficAccessToken: Type.Optional(nullable(Type.String())),
  domain: Type.Optional(nullable(Type.String())),
});
export type Sandbox = Static<typeof Sandbox>;

const ShownState = Type.Enum(["running", "paused", "ended"], {
  description: "ended: only where the request asks for ended sandboxes",
});

const listed = {
  templateID: Type.String(),
  alias: Type.Optional(Type.String()),
  sandboxID: Type.String(),
  clientID: Type.String({ deprecated: true }),
  startedAt: Timestamp,
  endAt: Timestamp,
  cpuCount: Type.Integer(),
  memoryMB: Type.Integer(),
  diskSizeMB: Type.Integer(),
  state: ShownState,
  envdVersion: Type.String(),
  metadata: Type.Optional(Metadata),
  volumeMounts: Type.Optional(Type.Array(VolumeMount)),
  storedBytes: Type.Optional(
    Type.Integer({ description: "Memory and disk of a paused sandbox on its node; of this platform alone" }),
  ),
  endedAt: Type.Optional(Timestamp),
  endReason: Type.Optional(EndReason),
  exitCode: Type.Optional(Type.Integer({ description: "Of the sandbox's first process, if the node saw it exit" })),
  endDetail: Type.Optional(Type.String({ description: "More about the reason, for people" })),
};

export const ListedSandbox = Type.Object(listed);
export type ListedSandbox = Static<typeof ListedSandbox>;

export const SandboxDetail = Type.Object({
  ...listed,
  envdAccessToken: Type.Optional(Type.String()),
  domain: Type.Optional(nullable(Type.String())),
  allowInternetAccess: Type.Optional(nullable(Type.Boolean())),
  network: Type.Optional(NetworkShown),
  iam: Type.Optional(Iam),
  lifecycle: Type.Optional(Type.Object({ autoResume: Type.Boolean(), onTimeout: Type.Enum(["kill", "pause"]) })),
  place: Type.Optional(Place),
});
export type SandboxDetail = Static<typeof SandboxDetail>;

export const SandboxMetric = Type.Object({
  timestamp: Timestamp,
  timestampUnix: Type.Integer(),
  cpuCount: Type.Integer(),
  cpuUsedPct: Type.Number(),
  memUsed: Type.Integer(),
  memTotal: Type.Integer(),
  memCache: Type.Integer(),
  diskUsed: Type.Integer(),
  diskTotal: Type.Integer(),
});
export type SandboxMetric = Static<typeof SandboxMetric>;

/** The words of create, in both versions of connect (docs/protocol.md, Lifecycle). */
const lifecycle = {
  onResume: Type.Optional(Type.Enum(["restore", "reboot"])),
  onTimeout: Type.Optional(Type.Enum(["kill", "pause"])),
};

const connectOptions = { ...open, ...otherNames({ ...inSeconds, keepMemory: "`memory`" }) };

export const ConnectBody = Type.Object(
  {
    timeout: Type.Optional(timeout),
    memory: Type.Optional(Type.Boolean({ default: true, description: "false: from disk only, when paused" })),
    ...lifecycle,
  },
  connectOptions,
);

export const ConnectBodyV1 = Type.Object(
  {
    timeout: Type.Integer({ minimum: 0, maximum: INT32 }),
    memory: Type.Optional(Type.Boolean()),
    ...lifecycle,
  },
  connectOptions,
);

/** Of one of several sandboxes that a request starts. */
export const StartResult = Type.Object({
  sandbox: Type.Optional(Sandbox),
  error: Type.Optional(
    Type.Object({
      code: Type.Integer({ description: "HTTP status" }),
      message: Type.String(),
      error_code: Type.Optional(Type.String({ description: "Open set" })),
    }),
  ),
});
export type StartResult = Static<typeof StartResult>;

export const Created = Type.Union([Sandbox, Type.Array(StartResult)], {
  description: "A sandbox; with `count` above 1 a result for each",
});
