/** Settings of the agent. One schema; every name carries its unit. */

import { type Static, Type } from "typebox";
import { LOG_LEVELS } from "../program/log.ts";
import { blobSettings } from "./blobs.ts";
import { otlpEndpoint } from "./schemas.ts";

const port = (fallback: number, description: string) =>
  Type.Integer({ default: fallback, minimum: 0, maximum: 65_535, description });
const ms = (fallback: number, description: string) =>
  Type.Integer({ default: fallback, minimum: 10, maximum: 86_400_000, description: `${description}, ms` });
const path = (fallback: string, description: string) =>
  Type.String({ default: fallback, pattern: "^/", maxLength: 4096, description });
const url = (description: string) => Type.String({ pattern: "^https?://[^/]+$", maxLength: 1024, description });

export const AgentConfig = Type.Object({
  agentHost: Type.String({ default: "127.0.0.1", description: "Address the agent API listens on" }),
  agentPort: port(5010, "Port of the agent API; 0 picks a free one"),
  agentUrl: Type.Optional(
    url("The agent API as the orchestrator reaches it. Default: its host and port, after a join with https"),
  ),
  proxyHost: Type.String({ default: "127.0.0.1", description: "Address the node proxy listens on" }),
  proxyPort: port(5011, "Port of the node proxy; 0 picks a free one"),
  proxyUrl: Type.Optional(
    url("The node proxy as the edge reaches it. Default: its host and port, after a join with https"),
  ),
  orchestratorUrl: Type.String({
    pattern: "^https?://[^/,]+(, *https?://[^/,]+)*$",
    maxLength: 4096,
    description:
      "URL of the orchestrator's API; after a join, of its port for nodes: https://…. Of several orchestrators of one platform: their URLs, comma-separated",
    default: "http://127.0.0.1:3000",
  }),
  nodeId: Type.String({
    default: "node-1",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    description: "Name of this node, unique in the cluster",
  }),
  joinToken: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        "Join token (svcjoin1.…): at its next start this machine becomes a node of the platform that made it, unless it is one",
    }),
  ),
  nodeToken: Type.Optional(
    Type.String({
      minLength: 16,
      maxLength: 1024,
      description: "Token that this node sends to the orchestrator; it names the node. Not read after a join",
    }),
  ),
  orchestratorToken: Type.Optional(
    Type.String({
      minLength: 16,
      maxLength: 1024,
      description: "Token that orchestrator and edge send to this node. Not read after a join",
    }),
  ),
  orchestratorTokenPrevious: Type.Optional(
    Type.String({
      maxLength: 16_384,
      description: "Earlier tokens of orchestrator and edge, which stay valid: comma-separated, newest first",
    }),
  ),
  metricsTokenPrevious: Type.Optional(
    Type.String({
      maxLength: 16_384,
      description: "Earlier metrics tokens, which stay valid: comma-separated, newest first",
    }),
  ),
  metricsToken: Type.Optional(
    Type.String({
      minLength: 16,
      maxLength: 1024,
      description: "Bearer token that may read /metrics, beside nodeToken",
    }),
  ),
  nodeRegion: Type.String({
    default: "",
    maxLength: 64,
    pattern: "^[A-Za-z0-9_-]*$",
    description:
      "Region of this node (SVC_REGIONS of the orchestrator); empty: it runs those of regions that no node has",
  }),
  labels: Type.String({ default: "", maxLength: 4096, description: "Labels of this node: key=value,key=value" }),
  otlpEndpoint,
  logLevel: Type.Enum([...LOG_LEVELS], { default: "info", description: "Lowest level that is logged" }),

  stateDir: path("/var/lib/svc", "Directory for files of the agent that survive a reboot"),
  disksDir: Type.Optional(
    Type.String({
      pattern: "^/",
      maxLength: 4096,
      description:
        "Directory of the sandboxes' disk images; may be on a file system of its own. Default: disks in the state directory",
    }),
  ),
  sealKeyFile: Type.Optional(
    Type.String({
      pattern: "^/",
      maxLength: 4096,
      description:
        "Key that seals secrets in the agent's database; made when missing. Default: seal.key beside the database",
    }),
  ),
  runDir: path("/run/svc", "Directory for files of the agent and the OCI runtime that do not survive a reboot"),
  envdRuntime: path("/opt/svc/envd-runtime/current", "Directory of the envd runtime, or a link to its newest version"),
  dockerSocket: path("/var/run/docker.sock", "Socket of the Docker daemon"),
  ociRuntime: Type.String({ default: "svc", description: "Name of the OCI runtime as registered with Docker" }),

  networkName: Type.String({
    default: "svc",
    pattern: "^[a-z][a-z0-9]{0,7}$",
    description: "nftables table, and prefix of links and namespaces; unique on the machine",
  }),
  subnet: Type.String({ default: "10.213.0.0/16", description: "IPv4 subnet of the sandboxes, /8 to /28" }),
  slotsAhead: Type.Integer({ default: 4, minimum: 0, maximum: 256, description: "Network slots prepared ahead" }),
  networkProbeAddress: Type.String({
    default: "203.0.113.1",
    pattern: "^([0-9.]{7,15})?$",
    description:
      "IPv4 address that a packet of the node's own is made for, to see whether the host's rules let packets of sandboxes out; it is caught before it leaves. Empty: no such probes",
  }),
  withoutNetwork: Type.Enum(["start", "refuse"], {
    default: "start",
    description:
      "New sandboxes that need the network, while the host lets no packet of one out: start them all the same, or refuse them",
  }),
  withoutOrchestrator: Type.Enum(["freeze", "run"], {
    default: "freeze",
    description:
      "Running sandboxes, while no orchestrator answers this node for so long that others may count it as lost: freeze them until one does, or let them run on",
  }),
  dnsUpstream: Type.String({
    default: "",
    maxLength: 1024,
    description: "Resolvers, host[:port],… Default: those of the machine's resolv.conf",
  }),

  sandboxCaFile: Type.Optional(
    Type.String({
      pattern: "^/",
      maxLength: 4096,
      description:
        "PEM file with certificate authorities that every sandbox and template build trusts, and the egress process with them",
    }),
  ),
  sandboxHttpProxy: Type.Optional(
    Type.String({
      maxLength: 4096,
      description:
        "HTTP proxy for plain HTTP of sandboxes and template builds: http://[user:password@]host:port; they reach it through the node's own proxy only",
    }),
  ),
  sandboxHttpsProxy: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: "The same for TLS and everything else that a program sends by CONNECT",
    }),
  ),
  sandboxNoProxy: Type.String({
    default: "",
    maxLength: 4096,
    description:
      "What programs in sandboxes connect to without a proxy (NO_PROXY), comma-separated; never a way around a policy",
  }),

  egressPort: port(0, "Port of the egress process at the gateway; 0 picks a free one and keeps it"),
  egressUid: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 4_294_967_294,
      description:
        "Id of the user that the egress process runs as; no other program may use it. Default: a new one at each start, above 1879048191",
    }),
  ),
  egressProxyAllow: Type.String({
    default: "",
    maxLength: 4096,
    description: "Internal ranges that egress proxies of sandboxes may be in: IPv4 CIDR, comma-separated",
  }),
  egressConnections: Type.Integer({
    default: 1024,
    minimum: 1,
    maximum: 65_535,
    description: "Most open connections of one sandbox to the outside",
  }),

  maxSandboxes: Type.Integer({
    default: 1000,
    minimum: 1,
    maximum: 100_000,
    description: "Most sandboxes that run on this node",
  }),
  bootConcurrency: Type.Integer({ default: 4, minimum: 1, maximum: 256, description: "Most cold starts at once" }),
  bootQueueMs: ms(
    10_000,
    "Longest wait of a start in the queue; after that it is refused, and keeps its place if it is asked for again",
  ),
  startLimitMs: ms(30_000, "Limit of one start"),
  poolMemoryPercent: Type.Integer({
    default: 10,
    minimum: 0,
    maximum: 90,
    description: "Share of the machine's memory that the warm pool may take, in percent; 0: no pool",
  }),
  poolReservedMb: Type.Integer({
    default: 768,
    minimum: 0,
    maximum: 10_485_760,
    description: "Free memory above which the warm pool may grow, MiB",
  }),
  frozenSeconds: Type.Integer({
    default: 300,
    minimum: 0,
    maximum: 86_400,
    description: "How long a paused sandbox stays frozen in memory, beside its snapshot on the disk",
  }),
  frozenReservedMb: Type.Integer({
    default: 1024,
    minimum: 0,
    maximum: 10_485_760,
    description: "Free memory below which frozen sandboxes are dropped from memory, oldest first, MiB",
  }),
  rewindCopySeconds: Type.Integer({
    default: 60,
    minimum: 0,
    maximum: 86_400,
    description:
      "How long a copy of a snapshot waits for the next rewind to it; all of them take as much memory as the pool may; 0: none is made",
  }),
  lazyPagesMb: Type.Integer({
    default: 128,
    minimum: 1,
    maximum: 10_485_760,
    description: "Size from which a memory image is restored lazily, MiB",
  }),
  diskReserveMb: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_073_741_824,
      description:
        "Disk space that sandboxes and snapshots leave free, MiB; 0: no reserve. Default: a tenth of the disk",
    }),
  ),
  snapshotQuotaMb: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_073_741_824,
      description:
        "Quota for the memory and disks of this node's snapshots and paused sandboxes, MiB; 0: no quota. Default: half of the disk that holds them",
    }),
  ),
  projectSnapshotQuotaMb: Type.Integer({
    default: 51_200,
    minimum: 0,
    maximum: 1_073_741_824,
    description: "Quota on this node for snapshots and paused sandboxes of one project, MiB; 0: no quota",
  }),
  holdHours: Type.Integer({
    default: 24,
    minimum: 1,
    maximum: 8760,
    description:
      "How long the node holds sandboxes and snapshots that no record names any more before it deletes them, hours; a short disk ends it earlier",
  }),
  ...blobSettings,
  baseImage: Type.String({ default: "svc/base:latest", description: "Image of the base template" }),
  buildConcurrency: Type.Integer({ default: 2, minimum: 1, maximum: 64, description: "Most template builds at once" }),
  buildCacheMb: Type.Integer({
    default: 20_480,
    minimum: 0,
    maximum: 1_073_741_824,
    description: "Most disk space of cached build layers, MiB; the least recently used are removed first",
  }),
  buildLocalImages: Type.String({
    default: "",
    maxLength: 4096,
    description:
      "Images of this machine's Docker daemon that every project may build from without a pull: names with *, …; empty: none",
  }),
  buildRegistries: Type.String({
    default: "*",
    maxLength: 4096,
    description: "Registries that images may be pulled from: host[:port] with *, …",
  }),
  endGraceMs: ms(30_000, "How long after its end time the agent ends a sandbox while the orchestrator does not answer"),
  heartbeatEveryMs: ms(5_000, "Time between two reports to the orchestrator"),
  usageEveryMs: ms(5_000, "Time between two usage samples of each sandbox"),
  usageKeepHours: Type.Integer({
    default: 6,
    minimum: 1,
    maximum: 720,
    description: "How long usage samples are kept, hours",
  }),
  logsKeepHours: Type.Integer({
    default: 24,
    minimum: 1,
    maximum: 720,
    description: "How long log lines are kept, hours",
  }),
  firewallCheckMs: ms(5_000, "Time between two checks of the firewall"),
  shutdownGraceMs: ms(20_000, "How long a stopping agent waits for starts under way"),
});
export type AgentConfig = Static<typeof AgentConfig>;
