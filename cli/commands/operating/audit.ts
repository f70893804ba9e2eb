/** The audit log. */

import type { Item } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import type { View } from "../../output/output.ts";
import { age } from "../../output/time.ts";
import { limitOf, showList } from "../../output/watch.ts";

const view: View<Item<"GET /audit">> = {
  name: ({ seq }) => `audit/${seq}`,
  columns: [
    { title: "SEQ", of: ({ seq }) => String(seq) },
    { title: "AGE", of: ({ at }) => age(at), moving: true },
    { title: "ACTOR", of: ({ actor: { kind, mask, id } }) => `${kind} ${mask ?? id ?? ""}`.trim() },
    { title: "ACTION", of: ({ action }) => action },
    { title: "OBJECT", of: ({ object: { kind, id } }) => [kind, id].filter(Boolean).join("/") },
    {
      title: "RESULT",
      of: ({ result, errorCode }) => (errorCode === null ? result : `${result} (${errorCode})`),
      state: true,
    },
    { title: "TIME", of: ({ at }) => at, wide: true },
    { title: "ADDRESS", of: ({ address }) => address ?? "", wide: true },
    { title: "REQUEST", of: ({ requestID }) => requestID ?? "", wide: true },
    { title: "DETAILS", of: ({ details }) => JSON.stringify(details), wide: true },
  ],
};

export const list: Action = async (context, _args, options) => {
  const query = {
    ...(options.action === undefined ? {} : { action: options.action }),
    ...(options.actor === undefined ? {} : { actor: options.actor }),
    ...(options.since === undefined ? {} : { start: Math.floor(Date.now() / 1000) - options.since }),
  };
  const { most, told } = limitOf(context, options);
  if (options.admin === true) {
    const admin = await context.admin();
    const team = options.project === undefined ? {} : { teamID: options.project };
    const all = { query: { ...query, ...team } };
    await showList(context, options, view, async () => told(await admin.all("GET /admin/audit", all, most)));
    return;
  }
  const api = await context.api();
  await showList(context, options, view, async () => told(await api.all("GET /audit", { query }, most)));
};
