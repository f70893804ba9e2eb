/** The network policy of a running sandbox: replaced, explained, and the log of its decisions. */

import { type Static, Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { bySandbox, ended, Timestamp } from "../common.ts";
import { NetworkUpdate } from "../network.ts";

const one = { tag: "Sandboxes", access: "project", params: bySandbox } as const;

const Verdict = Type.Enum(["allow", "deny"]);
const rule = Type.String({
  description: "What decided: an entry of allowOut or denyOut, `always …` (no option changes those), or `default`",
});

export const NetworkVerdict = Type.Object({
  verdict: Verdict,
  rule,
  reason: Type.String({ description: "One sentence for people" }),
  via: Type.Optional(Type.Literal("egressProxy", { description: "Through the sandbox's proxy, never directly" })),
  transform: Type.Optional(Type.String({ description: "Key of the rule whose headers are set on requests" })),
  addresses: Type.Array(Type.String(), { description: "Addresses of the name now; empty where it is not resolved" }),
});
export type NetworkVerdict = Static<typeof NetworkVerdict>;

export const NetworkDecision = Type.Object({
  timestamp: Timestamp,
  protocol: Type.Enum(["tcp", "udp", "dns"]),
  destination: Type.String({
    description: "IPv4 address; empty for a question about a name, and for a request by name to the node's proxy",
  }),
  port: Type.Integer({ minimum: 0, maximum: 65_535 }),
  name: Type.Optional(Type.String({ description: "Name that was read from the connection, or asked for" })),
  recordType: Type.Optional(Type.String({ description: "Of a question about a name: the type of records it was for" })),
  verdict: Verdict,
  rule: Type.String({
    description:
      "What decided, as in a check; `failed …` where it was allowed and did not work: a reason of the connection, or a DNS response code such as `NXDOMAIN`",
  }),
  reason: Type.Optional(
    Type.String({ description: "For what was denied or failed: one sentence for people, with what to do about it" }),
  ),
  count: Type.Integer({ minimum: 1, description: "Connections, packets or questions that were alike" }),
  sentBytes: Type.Integer({ minimum: 0 }),
  receivedBytes: Type.Integer({ minimum: 0 }),
});
export type NetworkDecision = Static<typeof NetworkDecision>;

export const sandboxNetworkApi = contract({
  updateNetwork: {
    ...one,
    method: "PUT",
    path: "/sandboxes/{sandboxID}/network",
    summary: "Replace the egress settings of a running sandbox; absent fields are cleared",
    body: NetworkUpdate,
    status: 204,
    errors: [400, 401, 404, 409, 503],
  },
  checkNetwork: {
    ...one,
    method: "GET",
    path: "/sandboxes/{sandboxID}/network/check",
    summary: "Check whether a running sandbox may open a connection, with the code that decides real connections",
    query: Type.Object({
      host: Type.String({ minLength: 1, maxLength: 256, description: "Host name or IPv4 address" }),
      port: Type.Integer({ minimum: 1, maximum: 65_535 }),
      protocol: Type.Optional(Type.Enum(["tcp", "udp"], { default: "tcp" })),
    }),
    status: 200,
    reply: NetworkVerdict,
    errors: [400, 401, 404, 409, 503],
  },
  networkLog: {
    ...one,
    method: "GET",
    path: "/sandboxes/{sandboxID}/network/log",
    summary: "Decisions about the sandbox's connections, allowed and denied, oldest first",
    query: Type.Object({
      cursor: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 99_999_999_999_999,
          description:
            "Unix time, ms, inclusive; without it the newest. The next page begins one above the last entry's",
        }),
      ),
      limit: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 1000,
          default: 1000,
          description: "From a cursor there may be more: those of the last millisecond are all there",
        }),
      ),
      ended,
    }),
    status: 200,
    reply: Type.Object({
      entries: Type.Array(NetworkDecision),
      suppressed: Type.Integer({
        minimum: 0,
        description: "Number of decisions that are not listed, because there were too many",
      }),
    }),
    errors: [400, 401, 404, 410, 503],
  },
});
