/** Network options of a sandbox as they travel on the wire. */

import { type Static, Type } from "typebox";
import { map, nullable } from "./common.ts";

const Destination = Type.String({ minLength: 1, maxLength: 253 });

const EgressProxy = Type.Object({
  address: Type.String({ minLength: 3, maxLength: 261, description: "host:port of a SOCKS5 proxy" }),
  username: Type.Optional(Type.String({ maxLength: 255 })),
  password: Type.Optional(Type.String({ maxLength: 255, description: "Write-only" })),
});

const Rule = Type.Object({
  transform: Type.Optional(
    Type.Object({
      allowPlainHttp: Type.Optional(
        Type.Boolean({
          default: false,
          description: "true: values of placeholders may be sent without TLS; otherwise such requests are refused",
        }),
      ),
      headers: Type.Optional(
        map(Type.String({ maxLength: 2048 }), {
          names: Type.String({ maxLength: 64, pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" }),
          maxProperties: 20,
          description:
            "Values may have placeholders ${e2b.secrets.NAME} and ${e2b.identity.tokens.NAME}, which are filled outside the sandbox",
        }),
      ),
    }),
  ),
});

const rules = map(Type.Array(Rule, { maxItems: 1 }), {
  names: Type.String({ minLength: 1, maxLength: 128 }),
  maxProperties: 10,
  description: "Rewrites egress requests, by host name or one leading wildcard label",
});

const egress = {
  allowOut: Type.Optional(
    Type.Array(Destination, {
      maxItems: 1000,
      description: "Addresses, CIDR ranges or domains",
      examples: [["pypi.org", "203.0.113.0/24"]],
    }),
  ),
  denyOut: Type.Optional(
    Type.Array(Destination, { maxItems: 1000, description: "Addresses or CIDR ranges", examples: [["0.0.0.0/0"]] }),
  ),
  egressProxy: Type.Optional(nullable(EgressProxy)),
  rules: Type.Optional(rules),
};

export const NetworkOptions = Type.Object({
  ...egress,
  allowPublicTraffic: Type.Optional(
    Type.Boolean({ default: true, description: "false: ports other than envd's ask for the traffic token" }),
  ),
  maskRequestHost: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 261,
      description: "Host header the sandbox's servers see; ${PORT} is replaced",
    }),
  ),
  httpsPorts: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), {
      maxItems: 64,
      description: "Ports the platform connects to over TLS, certificate unchecked; not 49983",
    }),
  ),
});
export type NetworkOptions = Static<typeof NetworkOptions>;

/** Network options as reads show them: without a proxy password. */
export const NetworkShown = Type.Object({
  ...egress,
  egressProxy: Type.Optional(nullable(Type.Object({ address: Type.String(), username: Type.Optional(Type.String()) }))),
  allowPublicTraffic: Type.Optional(Type.Boolean()),
  maskRequestHost: Type.Optional(Type.String()),
  httpsPorts: Type.Optional(Type.Array(Type.Integer())),
});

/** A full replacement of egress: absent fields are cleared. */
export const NetworkUpdate = Type.Object({
  ...egress,
  allow_internet_access: Type.Optional(Type.Boolean()),
});
