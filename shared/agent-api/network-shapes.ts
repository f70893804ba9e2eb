/** A node's log of decisions about a sandbox's flows, and its explanation of a decision. */

import { type Static, Type } from "typebox";
import { closed, time } from "./shapes.ts";

/** A decision about flows of a sandbox to one destination: one entry for flows that were alike and close in time. */
export const NetworkLogEntry = Type.Object(
  {
    /** Time of the first of these flows. */
    at: time,
    protocol: Type.Enum(["tcp", "udp", "dns"]),
    /** Empty for a question to the resolver. */
    address: Type.String(),
    port: Type.Integer({ minimum: 0, maximum: 65_535 }),
    /** The name that was read from the flow, or that the sandbox asked for. */
    name: Type.Optional(Type.String()),
    /** Of a question: the type of records, `A` or `TYPE4711`. */
    recordType: Type.Optional(Type.String()),
    verdict: Type.Enum(["allow", "deny"]),
    /**
     * `Decision.rule`; `limit connections` and `limit questions` where there were too many at once, `failed` with a reason
     * where it was allowed: of a question a response code (`NXDOMAIN`), `timeout`, `unreachable` or `no resolver`.
     */
    rule: Type.String(),
    /** Number of flows that the entry summarises. */
    count: Type.Integer({ minimum: 1 }),
    /** Bytes as far as known when the entry is written; 0 where the kernel does not count. */
    sentBytes: Type.Integer({ minimum: 0 }),
    receivedBytes: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type NetworkLogEntry = Static<typeof NetworkLogEntry>;

/** Newest last. */
export const NetworkLog = Type.Object(
  {
    entries: Type.Array(NetworkLogEntry),
    /** Number of decisions that are not in the log, because there were too many. */
    suppressed: Type.Integer({ minimum: 0 }),
  },
  closed,
);
export type NetworkLog = Static<typeof NetworkLog>;

/** A `Decision`, and the addresses that the name has at this moment. */
export const NetworkCheck = Type.Object(
  {
    verdict: Type.Enum(["allow", "deny"]),
    rule: Type.String(),
    reason: Type.String(),
    dial: Type.Enum(["hostname", "address"]),
    via: Type.Optional(Type.Literal("egressProxy")),
    transform: Type.Optional(Type.String()),
    /** Empty where the name is not resolved. */
    addresses: Type.Array(Type.String()),
  },
  closed,
);
export type NetworkCheck = Static<typeof NetworkCheck>;
