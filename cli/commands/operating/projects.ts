/** Projects, for operators. */

import type { Item } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { usage } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";

const view: View<Item<"GET /admin/projects">> = {
  name: ({ projectID }) => `project/${projectID}`,
  columns: [
    { title: "NAME", of: ({ name }) => name },
    { title: "STATUS", of: ({ status }) => status, state: true },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "ID", of: ({ projectID }) => projectID },
    { title: "SLUG", of: ({ slug }) => slug },
    { title: "REGION", of: ({ region }) => region ?? "any", wide: true },
    { title: "TEAM", of: ({ teamID }) => teamID, wide: true },
    {
      title: "LIMITS",
      of: ({ limits }) =>
        Object.entries(limits)
          .map(([name, value]) => `${name}=${value}`)
          .join(","),
      wide: true,
    },
    { title: "REASON", of: ({ statusReason }) => statusReason ?? "", wide: true },
  ],
};

export const list: Action = async (context, _args, options) => {
  const admin = await context.admin();
  await showList(context, options, view, () => admin.call("GET /admin/projects", { query: {} }));
};

export const create: Action = async ({ admin, out }, { first: name }) => {
  const connection = await admin();
  const { projectID } = await connection.call("POST /admin/projects", { body: { name } });
  await out.line(projectID);
};

export const limit: Action = async ({ admin, out }, { first: projectID }, { limits = {} }) => {
  const connection = await admin();
  if (Object.keys(limits).length === 0) throw usage("no limit is given", "--limits sandboxes=20");
  const changed = Object.fromEntries(
    Object.entries(limits).map(([name, value]) => {
      if (value === "default") return [name, null];
      if (!/^\d{1,10}$/.test(value))
        throw usage(`the limit ${name} must be a whole number or 'default', not '${value}'`);
      return [name, Number(value)];
    }),
  );
  await connection.call("PATCH /admin/projects/{projectID}", { params: { projectID }, body: { limits: changed } });
  await out.line(`project/${projectID} changed`);
};

export const disable: Action = async ({ admin, out }, { first: projectID }, { reason }) => {
  if (reason === undefined) throw usage("--reason is needed: the project's callers are shown it");
  const connection = await admin();
  await connection.call("POST /admin/projects/{projectID}/disable", { params: { projectID }, body: { reason } });
  await out.line(`project/${projectID} disabled`);
};

export const enable: Action = async ({ admin, out }, { first: projectID }) => {
  const connection = await admin();
  await connection.call("POST /admin/projects/{projectID}/enable", { params: { projectID } });
  await out.line(`project/${projectID} enabled`);
};

export const remove: Action = async ({ admin, out }, { first: projectID }, { force }) => {
  if (force !== true) throw usage("nothing of a deleted project comes back", "add --force if that is meant");
  const connection = await admin();
  await connection.call("DELETE /admin/projects/{projectID}", { params: { projectID } });
  await out.line(`project/${projectID} is being deleted`);
};
