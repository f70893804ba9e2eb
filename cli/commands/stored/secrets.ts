/** Values that sandboxes use and never see. None is ever an argument, and none is shown. */

import type { Item } from "../../api/client.ts";
import { readValue } from "../../api/value.ts";
import type { Action } from "../../definition.ts";
import type { View } from "../../output/output.ts";
import { age } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";
import { each } from "../each.ts";

const view: View<Item<"GET /secrets">> = {
  name: ({ name }) => `secret/${name}`,
  columns: [
    { title: "NAME", of: ({ name }) => name },
    { title: "VERSION", of: ({ currentVersion }) => String(currentVersion) },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "CHANGED", of: ({ updatedAt }) => age(updatedAt), moving: true },
    { title: "USES", of: ({ useCount }) => String(useCount) },
    { title: "LAST USED", of: ({ lastUsedAt }) => age(lastUsedAt), moving: true },
    { title: "ID", of: ({ secretID }) => secretID, wide: true },
    {
      title: "METADATA",
      of: ({ metadata }) =>
        Object.entries(metadata)
          .map(([key, value]) => `${key}=${value}`)
          .join(","),
      wide: true,
    },
  ],
};

export const create: Action = async (context, { first: name }, { file, metadata }) => {
  const value = await readValue(context, file, "value of the secret");
  const api = await context.api();
  const more = metadata === undefined ? {} : { metadata: { ...metadata } };
  const made = await api.call("POST /secrets", { body: { name, value, ...more } });
  await context.out.line(`secret/${made.name} created`);
};

export const update: Action = async (context, { first: secretID }, { file, metadata }) => {
  const value = await readValue(context, file, "value of the secret");
  const api = await context.api();
  const more = metadata === undefined ? {} : { metadata: { ...metadata } };
  const made = await api.call("POST /secrets/{secretID}", { params: { secretID }, body: { value, ...more } });
  await context.out.line(`secret/${made.name} has version ${made.currentVersion}`);
};

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  await showList(context, options, view, () => api.all("GET /secrets", { query: {} }));
};

export const remove: Action = async (context, { rest }) => {
  const api = await context.api();
  return each(context, rest, async (secretID) => {
    await api.call("DELETE /secrets/{secretID}", { params: { secretID } });
    return `secret/${secretID} deleted`;
  });
};
