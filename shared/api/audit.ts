/** The audit log: who changed what. */

import { type Static, Type } from "typebox";
import { contract } from "../http/contract.ts";
import { nullable, page, TeamId, Timestamp, UnixSeconds } from "./common.ts";

const ActorKind = Type.Enum(["key", "admin", "person", "node", "open", "platform"]);
const Result = Type.Enum(["begun", "done", "refused", "failed"]);
const name = Type.String({ minLength: 1, maxLength: 128 });
const Hash = Type.String({ pattern: "^[0-9a-f]{64}$" });
const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const AuditEntry = Type.Object({
  seq: Type.Integer({ description: "Number in the log of the platform, without gaps there" }),
  at: Timestamp,
  projectID: nullable(Type.String({ description: "UUID; null: about the platform" })),
  actor: Type.Object({
    kind: Type.Enum(["key", "admin", "person", "node", "open", "platform"], {
      description: "person: logged in to the console by name; open: nobody was identified",
    }),
    id: nullable(Type.String({ description: "Of the API key, the person or the node" })),
    mask: nullable(Type.String({ description: "The API key with its middle left out; of a person the name" })),
  }),
  action: Type.String({ description: "operationId of the request, or what the platform did by itself" }),
  object: Type.Object({ kind: nullable(Type.String()), id: nullable(Type.String()) }),
  result: Type.Enum(["begun", "done", "refused", "failed"], {
    description: "begun: the first change of a request that makes several; an entry with refersTo tells its end",
  }),
  status: nullable(Type.Integer({ description: "Of the answer; null in an entry written with its change" })),
  errorCode: nullable(Type.String()),
  address: nullable(Type.String({ description: "Source address; projects do not see those of operators and nodes" })),
  requestID: nullable(Type.String()),
  refersTo: nullable(Type.Integer({ description: "seq of the entry that the request wrote with its first change" })),
  details: Type.Object({}, { description: "Names and sizes from the request and the answer, or a reason" }),
  previousHash: Type.String(),
  hash: Type.String({ description: "SHA-256 of this entry and previousHash" }),
});
export type AuditEntry = Static<typeof AuditEntry>;

const filters = {
  action: Type.Optional(name),
  actor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: "Id of an API key, a person or a node" }),
  ),
  actorKind: Type.Optional(ActorKind),
  object: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: "Id of the object" })),
  objectKind: Type.Optional(name),
  result: Type.Optional(Result),
  requestID: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
  start: Type.Optional(UnixSeconds),
  end: Type.Optional(UnixSeconds),
  order: Type.Optional(Type.Enum(["asc", "desc"], { default: "desc" })),
  ...page,
};

export const auditApi = contract({
  listAudit: {
    method: "GET",
    path: "/audit",
    summary: "The audit log of the project; a page can be short or empty and still name the next one",
    tag: "Audit",
    access: "project",
    // Addresses and names of those who work on the project are more than a reader of its sandboxes needs.
    scope: "admin",
    query: Type.Object(filters),
    status: 200,
    reply: Type.Array(AuditEntry),
    errors: [400, 401, 403],
  },
});

export const adminAuditApi = contract({
  listAllAudit: {
    method: "GET",
    path: "/admin/audit",
    summary: "The audit log of the platform, or of one project",
    tag: "Audit",
    access: "admin",
    query: Type.Object({ ...filters, teamID: Type.Optional(TeamId) }),
    status: 200,
    reply: Type.Array(AuditEntry),
    errors: [400, 401, 404],
  },
  verifyAudit: {
    method: "GET",
    path: "/admin/audit/verify",
    summary: "Read the whole log and check that no entry is edited, missing or moved",
    tag: "Audit",
    access: "admin",
    query: Type.Object({
      seq: Type.Optional({ ...Seq, description: "Number of an entry that was noted earlier, with hash" }),
      hash: Type.Optional({ ...Hash, description: "Its hash: an older log that was put back is found by it" }),
    }),
    status: 200,
    reply: Type.Object({
      whole: Type.Boolean(),
      entries: Type.Integer({ description: "Entries that were read and fit" }),
      anchor: Type.Object({ seq: Type.Integer(), hash: Type.String() }, { description: "The chain begins after it" }),
      head: Type.Object({ seq: Type.Integer(), hash: Type.String() }, { description: "The last entry that fits" }),
      broken: nullable(
        Type.Object({
          seq: Type.Integer({ description: "The first entry that does not fit" }),
          fault: Type.Enum(["missing", "edited", "unchained", "replaced"]),
        }),
      ),
    }),
    errors: [400, 401],
  },
});
