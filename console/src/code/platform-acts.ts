/** Acts of operators on projects, in code. Pure. */

import type { Act, Body } from "./act.ts";
import { word } from "./literals.ts";

const KEYS = "/admin/teams/:id/api-keys";

export const PLATFORM_ACTS: readonly Act[] = [
  {
    method: "POST",
    path: "/admin/projects",
    tell: (_ids, body) => {
      const isNamedAlone = Object.keys(body.fields).every((field) => field === "name");
      return {
        title: `Create the project ${body.text("name")}`,
        ...(isNamedAlone ? { svc: `svc project create ${word(body.text("name"))}` } : {}),
      };
    },
  },
  {
    method: "PATCH",
    path: "/admin/projects/:id",
    tell: ([id = ""], body) =>
      body.has("limits")
        ? { title: `Change limits of the project ${id}`, svc: `svc project limit ${word(id)}${limitsOf(body)}` }
        : { title: `Change the project ${id}` },
  },
  {
    method: "POST",
    path: "/admin/projects/:id/disable",
    tell: ([id = ""], body) => ({
      title: `Disable the project ${id}`,
      svc: `svc project disable ${word(id)} --reason ${word(body.text("reason"))}`,
    }),
  },
  {
    method: "POST",
    path: "/admin/projects/:id/ban",
    tell: ([id = ""]) => ({ title: `Ban the project ${id}` }),
  },
  {
    method: "POST",
    path: "/admin/projects/:id/enable",
    tell: ([id = ""]) => ({ title: `Take the project ${id} back`, svc: `svc project enable ${word(id)}` }),
  },
  {
    method: "DELETE",
    path: "/admin/projects/:id",
    tell: ([id = ""]) => ({ title: `Delete the project ${id}`, svc: `svc project delete ${word(id)} --force` }),
  },
  {
    method: "POST",
    path: "/admin/workspaces",
    tell: (_ids, body) => ({ title: `Create the workspace ${body.text("name")}` }),
  },
  {
    method: "PATCH",
    path: "/admin/workspaces/:id",
    tell: ([id = ""]) => ({ title: `Rename the workspace ${id}` }),
  },
  {
    method: "DELETE",
    path: "/admin/workspaces/:id",
    tell: ([id = ""]) => ({ title: `Delete the workspace ${id}` }),
  },
  {
    method: "POST",
    path: "/admin/teams/:id/sandboxes/kill",
    tell: ([id = ""]) => ({ title: `Kill every sandbox of the project ${id}` }),
  },
  {
    method: "POST",
    path: "/admin/teams/:id/builds/cancel",
    tell: ([id = ""]) => ({ title: `Cancel every build of the project ${id}` }),
  },
  {
    method: "POST",
    path: KEYS,
    tell: ([id = ""], body) => {
      const scopes = body.texts("scopes").map((scope) => ` --scope ${word(scope)}`);
      const command = `svc key create ${word(body.text("name"))}${scopes.join("")} --project ${word(id)}`;
      return {
        title: `Make the API key ${body.text("name")} of the project ${id}`,
        // The command takes how long it is until then, and not a date.
        ...(body.text("expiresAt") === "" ? { svc: command } : {}),
      };
    },
  },
  {
    method: "DELETE",
    path: `${KEYS}/:key`,
    tell: ([id = "", key = ""]) => ({
      title: `Revoke the API key ${key} of the project ${id}`,
      svc: `svc key delete ${word(key)} --project ${word(id)}`,
    }),
  },
];

function limitsOf({ fields }: Body): string {
  const limits = Object.entries((fields["limits"] ?? {}) as Readonly<Record<string, number | null>>);
  return limits.map(([name, value]) => ` --limits ${word(`${name}=${value ?? "default"}`)}`).join("");
}
