/** Settings of the edge: those that an orchestrator which is one has too, and those of edge programs. */

import { type Static, Type } from "typebox";
import { LOG_LEVELS } from "../program/log.ts";
import { connections, ms, otlpEndpoint, port, secret } from "./schemas.ts";

const file = (description: string) => Type.String({ pattern: "^/", maxLength: 4096, description });

export const edgeSettings = {
  edgeHost: Type.String({ default: "127.0.0.1", description: "Address the sandbox host (edge) listens on" }),
  edgePort: port(3002, "Port of the sandbox host; 0 picks a free one"),
  edgeConnectionLimit: Type.Integer({
    default: 2048,
    minimum: 1,
    maximum: 1_000_000,
    description: "Most open connections to one sandbox through the edge",
  }),
  edgeConnections: connections("Connections to the edge at a time"),
  edgeConnectionsPerAddress: connections("Connections to the edge from one address"),
  domain: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 253,
      pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$",
      description: "Base domain of sandboxes, <port>-<id>.<domain>; may carry a port. Default: localhost:<edge port>",
    }),
  ),
  tlsCertFile: Type.Optional(
    file(
      "PEM file with a certificate for *.<domain> and its chain: opens the port for clients on other machines, where API and sandboxes are reached by TLS. Read again when it changes",
    ),
  ),
  tlsKeyFile: Type.Optional(file("PEM file with its key, which the program's user can read")),
  tlsHost: Type.String({ default: "0.0.0.0", description: "Address of the port for clients on other machines" }),
  tlsPort: port(443, "Port for clients on other machines; 0 picks a free one"),
  withoutTls: Type.Enum(["refuse", "a-proxy-of-mine-ends-tls", "keys-cross-the-network-in-clear"], {
    default: "refuse",
    description:
      "What protects the ports of API and edge where they listen beyond loopback, which they refuse unless told how",
  }),
  trustedProxies: Type.String({
    default: "",
    maxLength: 4096,
    description:
      "Proxies in front of the API or the edge whose X-Forwarded-For is believed: addresses and CIDR, comma-separated",
  }),
};

export const EdgeConfig = Type.Object({
  ...edgeSettings,
  orchestratorUrl: Type.String({
    default: "http://127.0.0.1:3000",
    pattern: "^https?://[^/,]+(\\s*,\\s*https?://[^/,]+)*$",
    maxLength: 8192,
    description:
      "URLs of orchestrators, comma-separated: the API on this machine, or after a join the ports for nodes (https://…)",
  }),
  edgeToken: Type.Optional(
    secret("Token of edges on the orchestrator's machine (orchestrator --edge-token prints it). Not read after a join"),
  ),
  edgeId: Type.String({
    default: "edge-1",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    description: "Name of this edge, unique on the platform",
  }),
  joinToken: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 256,
      description:
        "Join token (svcjoin1.…) of an edge: at its next start this machine becomes one of the platform that made it",
    }),
  ),
  edgeStateDir: Type.String({
    default: "/var/lib/svc/edge",
    pattern: "^/",
    maxLength: 4096,
    description: "Directory of the key and the certificate of an edge that has joined",
  }),
  edgeStatusHost: Type.String({
    default: "127.0.0.1",
    description: "Address that answers operators' tools: /livez, /readyz, /metrics",
  }),
  edgeStatusPort: port(3004, "Port that answers operators' tools; 0 picks a free one"),
  edgeAskMs: ms(
    5_000,
    "How long a request waits for an orchestrator that can say where its sandbox runs, and for a node that takes no connection",
  ),
  otlpEndpoint,
  logLevel: Type.Enum([...LOG_LEVELS], { default: "info", description: "Lowest level that is logged" }),
  shutdownGraceMs: ms(30_000, "How long a stopping edge waits for work under way"),
});
export type EdgeConfig = Static<typeof EdgeConfig>;
