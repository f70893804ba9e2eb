/** The operators' list of the sandboxes of all projects. */

import { Type } from "typebox";
import { contract } from "../../http/contract.ts";
import { nullable, page, TeamId, Timestamp } from "../common.ts";

const SandboxState = Type.Enum([
  "starting",
  "running",
  "pausing",
  "paused",
  "snapshotting",
  "rewinding",
  "killing",
  "gone",
]);

const AdminSandbox = Type.Object({
  sandboxID: Type.String(),
  teamID: Type.String(),
  projectID: nullable(Type.String({ description: "prj_ id; null: the project is deleted" })),
  projectName: nullable(Type.String()),
  nodeID: Type.String(),
  state: SandboxState,
  templateID: Type.String(),
  createdAt: Timestamp,
  startedAt: Timestamp,
  endAt: Timestamp,
  ageSeconds: Type.Integer({ description: "Since its creation; of an ended one, until its end" }),
  cpuCount: Type.Integer(),
  memoryMB: Type.Integer(),
  diskSizeMB: Type.Integer(),
});

export const adminSandboxApi = contract({
  listAllSandboxes: {
    tag: "Admin",
    access: "admin",
    method: "GET",
    path: "/admin/sandboxes",
    summary: "The sandboxes of all projects, the newest first; ended ones only where `state` asks for them",
    query: Type.Object({
      ...page,
      teamID: Type.Optional(TeamId),
      nodeID: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
      state: Type.Optional(
        Type.String({
          maxLength: 128,
          description: "Comma-separated; default: every state but gone",
          examples: ["running,paused"],
        }),
      ),
    }),
    status: 200,
    reply: Type.Array(AdminSandbox),
    errors: [400, 401],
  },
});
