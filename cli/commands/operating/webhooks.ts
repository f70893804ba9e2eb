/** Where events are sent to. */

import type { Api, Item } from "../../api/client.ts";
import { readValue } from "../../api/value.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age } from "../../output/time.ts";
import { limitOf, showList } from "../../output/watch.ts";
import { each } from "../each.ts";
import { wholeType } from "./event-types.ts";

type Webhook = Item<"GET /events/webhooks">;

const view: View<Webhook> = {
  name: ({ id }) => `webhook/${id}`,
  columns: [
    { title: "NAME", of: ({ name }) => name },
    {
      title: "STATE",
      of: ({ enabled, disabledReason }) =>
        enabled ? "active" : `disabled${disabledReason === undefined ? "" : ` (${disabledReason})`}`,
      state: true,
    },
    { title: "URL", of: ({ url }) => url },
    { title: "FAILING", of: ({ failingSince }) => age(failingSince), moving: true },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "ID", of: ({ id }) => id },
    { title: "EVENTS", of: ({ events }) => events.join(","), wide: true },
  ],
};

type Delivery = Item<"GET /events/webhooks/{webhookID}/deliveries">;

const deliveryView: View<Delivery> = {
  name: ({ id }) => `delivery/${id}`,
  columns: [
    { title: "ID", of: ({ id }) => id },
    { title: "STATUS", of: ({ status }) => status, state: true },
    { title: "EVENT", of: ({ eventType }) => eventType },
    { title: "SANDBOX", of: ({ sandboxId }) => sandboxId ?? "" },
    { title: "ATTEMPTS", of: ({ attempts }) => String(attempts) },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "ANSWER", of: ({ lastAttempt }) => String(lastAttempt?.httpStatus ?? lastAttempt?.errorClass ?? "") },
    { title: "ERROR", of: ({ lastAttempt }) => lastAttempt?.error ?? "", wide: true },
  ],
};

interface Attempt extends NonNullable<Delivery["lastAttempt"]> {
  readonly number: number;
}

const attemptView: View<Attempt> = {
  name: ({ number }) => `attempt/${number}`,
  columns: [
    { title: "ATTEMPT", of: ({ number }) => String(number) },
    { title: "AT", of: ({ at }) => at },
    { title: "ANSWER", of: ({ httpStatus, errorClass }) => String(httpStatus ?? errorClass ?? "no end") },
    { title: "TOOK", of: ({ durationMs }) => (durationMs === undefined ? "-" : `${durationMs}ms`) },
    { title: "ERROR", of: ({ error }) => error ?? "" },
    { title: "BODY", of: ({ responseBody }) => responseBody ?? "" },
  ],
};

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  await showList(context, options, view, () => api.call("GET /events/webhooks", {}));
};

/** A webhook without `--event` gets the whole life of every sandbox. */
const LIFE = ["created", "updated", "paused", "resumed", "killed", "checkpointed"];

export const create: Action = async (context, { first: name, second: url }, options) => {
  const events = (options.event ?? LIFE).map(wholeType);
  const signatureSecret = await readValue(context, options.secretFile, "secret of the signatures");
  const api = await context.api();
  const { id } = await api.call("POST /events/webhooks", {
    body: { name, url, signatureSecret, events: events as never },
  });
  await context.out.line(`webhook/${id} created`);
};

export const deliveries: Action = async (context, { first }, options) => {
  const api = await context.api();
  const webhookID = await idOf(api, first);
  const query = options.state === undefined ? {} : { status: options.state as "pending" | "delivered" | "failed" };
  const { most, told } = limitOf(context, options);
  await showList(context, options, deliveryView, async () =>
    told(await api.all("GET /events/webhooks/{webhookID}/deliveries", { params: { webhookID }, query }, most)),
  );
};

export const attempts: Action = async (context, { first, second: deliveryID }, options) => {
  const api = await context.api();
  const webhookID = await idOf(api, first);
  await showList(context, options, attemptView, async () => {
    const all = await api.all("GET /events/webhooks/{webhookID}/deliveries", { params: { webhookID } });
    const delivery = all.find(({ id }) => id === deliveryID);
    if (delivery === undefined)
      throw new Failure(`the log of the webhook '${first}' has no delivery '${deliveryID}'`, {
        exitCode: EXIT.notFound,
        wayOut: `\`svc webhook deliveries ${first}\` lists those that it has`,
      });
    return attemptsOf(delivery);
  });
};

function attemptsOf({ attempts: made, earlierAttempts = [], lastAttempt }: Delivery): readonly Attempt[] {
  const kept = [...earlierAttempts, ...(lastAttempt === undefined ? [] : [lastAttempt])];
  return kept.map((attempt, index) => ({ number: made - kept.length + 1 + index, ...attempt }));
}

export const test: Action = async ({ api, out }, { first }) => {
  const connection = await api();
  const webhookID = await idOf(connection, first);
  const { id } = await connection.call("POST /events/webhooks/{webhookID}/test", { params: { webhookID } });
  await out.line(`delivery/${id} begun`);
  out.note(`its result: svc webhook deliveries ${first}`);
};

export const set: Action = async ({ api, out }, { first }, { enable, disable }) => {
  if ((enable === true) === (disable === true)) throw usage("either --enable or --disable is needed");
  const connection = await api();
  const webhookID = await idOf(connection, first);
  const body = { enabled: enable === true };
  await connection.call("PATCH /events/webhooks/{webhookID}", { params: { webhookID }, body });
  await out.line(`webhook/${webhookID} ${enable === true ? "enabled" : "disabled"}`);
};

export const redeliver: Action = async ({ api, out }, { first, second: deliveryID }) => {
  const connection = await api();
  const params = { webhookID: await idOf(connection, first), deliveryID };
  const { id } = await connection.call("POST /events/webhooks/{webhookID}/deliveries/{deliveryID}/redeliver", {
    params,
  });
  await out.line(`delivery/${id} begun`);
};

export const remove: Action = async (context, { rest }) => {
  const api = await context.api();
  return each(context, rest, async (named) => {
    const webhookID = await idOf(api, named);
    await api.call("DELETE /events/webhooks/{webhookID}", { params: { webhookID } });
    return `webhook/${webhookID} deleted`;
  });
};

async function idOf(api: Api, named: string): Promise<string> {
  const webhooks = await api.call("GET /events/webhooks", {});
  const found = webhooks.filter(({ id, name }) => id === named || name === named);
  if (found.length > 1) throw usage(`${found.length} webhooks are called '${named}'`, "name the id of one");
  if (found[0] === undefined) throw new Failure(`there is no webhook '${named}'`, { exitCode: EXIT.notFound });
  return found[0].id;
}
