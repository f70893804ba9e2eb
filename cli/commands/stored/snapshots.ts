/** Stored states of sandboxes. */

import type { Item } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";
import { each } from "../each.ts";

const view: View<Item<"GET /snapshots">> = {
  name: ({ snapshotID }) => `snapshot/${snapshotID}`,
  columns: [
    { title: "ID", of: ({ snapshotID }) => snapshotID },
    { title: "NAMES", of: ({ names }) => names.join(",") },
    { title: "STORED", of: ({ storedBytes }) => bytes(storedBytes) },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "SANDBOX", of: ({ sourceSandboxID }) => sourceSandboxID ?? "", wide: true },
    { title: "TEMPLATE", of: ({ templateID }) => templateID, wide: true },
  ],
};

export const create: Action = async ({ api, out }, { first: sandboxID }, { name, memory }) => {
  const connection = await api();
  const { snapshotID } = await connection.call("POST /sandboxes/{sandboxID}/snapshots", {
    params: { sandboxID },
    body: { ...(name === undefined ? {} : { name }), ...(memory === false ? { memory: false } : {}) },
  });
  await out.line(snapshotID);
};

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  const query = options.sandbox === undefined ? {} : { sandboxID: options.sandbox };
  await showList(context, options, view, () => api.all("GET /snapshots", { query }, options.limit));
};

export const remove: Action = async (context, { rest }) => {
  const api = await context.api();
  return each(context, rest, async (templateID) => {
    await api.call("DELETE /templates/{templateID}", { params: { templateID } });
    return `snapshot/${templateID} deleted`;
  });
};
