/** Templates and their tags. */

import type { Item, Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { usage } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";
import { each } from "../each.ts";

type Template = Item<"GET /v2/templates">;
type Build = Reply<"GET /templates/{templateID}">["builds"][number];

const view: View<Template> = {
  name: ({ templateID }) => `template/${templateID}`,
  columns: [
    { title: "NAME", of: ({ names }) => names.join(",") },
    { title: "STATUS", of: ({ buildStatus }) => buildStatus, state: true },
    { title: "CPU", of: ({ cpuCount }) => String(cpuCount) },
    { title: "MEMORY", of: ({ memoryMB }) => bytes(memoryMB * 2 ** 20) },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "LAST USED", of: ({ lastSpawnedAt }) => age(lastSpawnedAt), moving: true },
    { title: "ID", of: ({ templateID }) => templateID },
    { title: "PUBLIC", of: (template) => (template.public ? "yes" : "no"), wide: true },
    { title: "BUILDS", of: ({ buildCount }) => String(buildCount), wide: true },
    { title: "SANDBOXES", of: ({ spawnCount }) => String(spawnCount), wide: true },
  ],
};

const buildView: View<Build> = {
  name: ({ buildID }) => `build/${buildID}`,
  columns: [
    { title: "BUILD", of: ({ buildID }) => buildID },
    { title: "STATUS", of: ({ status }) => status, state: true },
    { title: "CPU", of: ({ cpuCount }) => String(cpuCount) },
    { title: "MEMORY", of: ({ memoryMB }) => bytes(memoryMB * 2 ** 20) },
    { title: "DISK", of: ({ diskSizeMB }) => (diskSizeMB === undefined ? "" : bytes(diskSizeMB * 2 ** 20)) },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "ENVD", of: ({ envdVersion }) => envdVersion ?? "", wide: true },
  ],
};

const tagView: View<Item<"GET /templates/{templateID}/tags">> = {
  name: ({ tag }) => `tag/${tag}`,
  columns: [
    { title: "TAG", of: ({ tag }) => tag },
    { title: "BUILD", of: ({ buildID }) => buildID },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
  ],
};

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  await showList(context, options, view, () => api.all("GET /v2/templates", { query: {} }));
};

export const builds: Action = async (context, { first: templateID }, options) => {
  const api = await context.api();
  await showList(context, options, buildView, async () => {
    const all: Build[] = [];
    const pages = api.pages("GET /templates/{templateID}", { params: { templateID }, query: {} });
    for await (const { builds: some } of pages) all.push(...some);
    return all;
  });
};

export const tag: Action = async ({ api, out }, { first: target, rest }) => {
  const connection = await api();
  const { tags, buildID } = await connection.call("POST /templates/tags", { body: { target, tags: [...rest] } });
  await out.line(`build/${buildID} has ${tags.join(", ")}`);
};

export const warm: Action = async (context, { first: templateID, second: count }) => {
  const isGiven = count !== "";
  if (isGiven && !/^\d{1,4}$/.test(count)) throw usage(`'${count}' is no number of containers`, "write 0 to 1024");
  const api = await context.api();
  const warmPool = isGiven ? Number(count) : null;
  await api.call("PATCH /v2/templates/{templateID}", { params: { templateID }, body: { warmPool } });
  await context.out.line(`template/${templateID} is kept warm: ${isGiven ? count : "what the demand asks for"}`);
};

export const tags: Action = async (context, { first: templateID }, options) => {
  const api = await context.api();
  await showList(context, options, tagView, () =>
    api.call("GET /templates/{templateID}/tags", { params: { templateID } }),
  );
};

export const remove: Action = async (context, { rest }) => {
  const api = await context.api();
  return each(context, rest, async (templateID) => {
    await api.call("DELETE /templates/{templateID}", { params: { templateID } });
    return `template/${templateID} deleted`;
  });
};
