/** What happens to a node, as operators read it. */

import { type Static, Type } from "typebox";
import { nullable, Timestamp } from "../common.ts";

export const NodeEventKind = Type.Enum([
  "joined",
  "ready",
  "unreachable",
  "lost",
  "returned",
  "cordoned",
  "standby",
  "draining",
  "drained",
  "certificate_renewed",
  "removed",
]);
export type NodeEventKind = Static<typeof NodeEventKind>;

export const NodeEvent = Type.Object({
  at: Timestamp,
  kind: NodeEventKind,
  detail: nullable(Type.String({ description: "Why, or until when; null: the kind says it all" })),
});
