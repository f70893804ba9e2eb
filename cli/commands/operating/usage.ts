/** The limits of a project, and what it uses of them. */

import type { Api, Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { usage } from "../../failure.ts";
import type { Options } from "../../options.ts";
import type { View } from "../../output/output.ts";
import { showList } from "../../output/watch.ts";

type Limit = Reply<"GET /projects/{projectID}/limits">["limits"]["sandboxes"] & { readonly name: string };

const view: View<Limit> = {
  name: ({ name }) => `limit/${name}`,
  columns: [
    { title: "LIMIT", of: ({ name }) => name },
    { title: "USED", of: ({ used }) => (used === null ? "" : String(used)) },
    { title: "OF", of: ({ limit }) => (limit === null ? "no limit" : String(limit)) },
    { title: "SET BY", of: ({ own }) => (own ? "project" : "platform") },
  ],
};

export const limits: Action = async (context, _args, options) => {
  const api = await context.api();
  const projectID = await projectOf(api, options);
  let contact = "";
  await showList(context, options, view, async () => {
    const found = await api.call("GET /projects/{projectID}/limits", { params: { projectID } });
    contact = found.contact;
    return Object.entries(found.limits).map(([name, limit]) => ({ name, ...limit }));
  });
  if (contact !== "" && options.output === undefined) context.out.note(`For more: ${contact}`);
};

/** No route tells a key its project: an entry of its audit log, or an event, does. */
async function projectOf(api: Api, { project }: Options): Promise<string> {
  if (project !== undefined) return project;
  const [entry] = await api.call("GET /audit", { query: { limit: 1 } }).catch(() => []);
  if (typeof entry?.projectID === "string") return entry.projectID;
  const [event] = await api.call("GET /events", { query: { limit: 1 } });
  if (event !== undefined) return event.sandboxTeamId;
  throw usage(
    "the project of the key is not known yet",
    "create a sandbox first, or name the project as an operator: --project",
  );
}
