/** Creates, lists and shows sandboxes. */

import type { Item, Reply } from "../../api/client.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT } from "../../failure.ts";
import type { Options } from "../../options.ts";
import type { View } from "../../output/output.ts";
import { age, bytes, until } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";

type Listed = Item<"GET /v2/sandboxes">;
type Detail = Reply<"GET /sandboxes/{sandboxID}">;

const templateOf = ({ alias, templateID }: Pick<Listed, "alias" | "templateID">) => alias ?? templateID;
const metadataOf = ({ metadata }: Pick<Listed, "metadata">) =>
  Object.entries(metadata ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(",");

const listView: View<Listed> = {
  name: ({ sandboxID }) => `sandbox/${sandboxID}`,
  columns: [
    { title: "ID", of: ({ sandboxID }) => sandboxID },
    { title: "STATE", of: ({ state }) => state, state: true },
    { title: "TEMPLATE", of: templateOf },
    { title: "AGE", of: ({ startedAt }) => age(startedAt), moving: true },
    { title: "ENDS IN", of: ({ state, endAt }) => (state === "running" ? until(endAt) : "-"), moving: true },
    { title: "CPU", of: ({ cpuCount }) => String(cpuCount), wide: true },
    { title: "MEMORY", of: ({ memoryMB }) => bytes(memoryMB * 2 ** 20), wide: true },
    { title: "STORED", of: ({ storedBytes }) => bytes(storedBytes), wide: true },
    { title: "REASON", of: ({ endReason }) => endReason ?? "", wide: true },
    { title: "METADATA", of: metadataOf, wide: true },
  ],
};

const detailView: View<Detail> = {
  name: listView.name,
  columns: [
    { title: "ID", of: ({ sandboxID }) => sandboxID },
    { title: "STATE", of: ({ state }) => state, state: true },
    {
      title: "TEMPLATE",
      of: ({ alias, templateID }) => (alias === undefined ? templateID : `${alias} (${templateID})`),
    },
    { title: "STARTED", of: ({ startedAt }) => `${startedAt} (${age(startedAt)} ago)` },
    { title: "ENDS", of: ({ endAt, lifecycle }) => `${endAt} (${lifecycle?.onTimeout ?? "kill"})` },
    {
      title: "SIZE",
      of: ({ cpuCount, memoryMB, diskSizeMB }) => `${cpuCount} cores, ${memoryMB} MiB memory, ${diskSizeMB} MiB disk`,
    },
    { title: "METADATA", of: metadataOf },
    {
      title: "VOLUMES",
      of: ({ volumeMounts }) => (volumeMounts ?? []).map(({ name, path }) => `${name}=${path}`).join(","),
    },
    { title: "STORED", of: ({ storedBytes }) => bytes(storedBytes) },
    { title: "ENVD", of: ({ envdVersion }) => envdVersion },
    { title: "ENDED", of: ({ endedAt }) => endedAt ?? "" },
    {
      title: "REASON",
      of: ({ endReason, endDetail }) => [endReason ?? "", endDetail ?? ""].filter(Boolean).join(": "),
    },
  ],
};

export const create: Action = async (context, { first: templateID }, options) => {
  const api = await context.api();
  const created = await api.call("POST /v2/sandboxes", {
    body: {
      templateID: templateID === "" ? "base" : templateID.replace(/^snapshot\//, ""),
      ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
      ...(options.env === undefined ? {} : { envVars: { ...options.env } }),
      ...(options.metadata === undefined ? {} : { metadata: { ...options.metadata } }),
      ...(options.cpu === undefined ? {} : { cpuCount: options.cpu }),
      ...(options.memorySize === undefined ? {} : { memoryMB: options.memorySize }),
      ...(options.count === undefined ? {} : { count: options.count }),
      ...(options.autoPause === true ? { autoPause: true } : {}),
      ...(options.internet === false ? { allow_internet_access: false } : {}),
      ...(options.memory === false ? { memory: false } : {}),
      ...(options.volume === undefined
        ? {}
        : { volumeMounts: Object.entries(options.volume).map(([name, path]) => ({ name, path })) }),
    },
  });
  return started(context, Array.isArray(created) ? created : [{ sandbox: created }], options);
};

/** Prints the ids of the sandboxes that a call has started, and the error of each that failed; an error decides the exit code. */
export async function started(
  { out }: Context,
  results: Reply<"POST /sandboxes/{sandboxID}/fork">,
  options: Options,
): Promise<number> {
  const shown = results.map(({ sandbox, ...rest }) =>
    sandbox === undefined ? rest : { ...rest, sandbox: withoutTokens(sandbox) },
  );
  const [only] = shown;
  const value = shown.length === 1 && only !== undefined && "sandbox" in only ? only.sandbox : shown;
  if (!(await out.structured(value, options))) {
    const prefix = options.output === "name" ? "sandbox/" : "";
    const ids = results.flatMap(({ sandbox }) => (sandbox === undefined ? [] : [`${prefix}${sandbox.sandboxID}`]));
    await out.line(...ids);
  }
  const failed = results.flatMap(({ error }) => (error === undefined ? [] : [error]));
  for (const { message } of failed) out.note(`error: ${message}`);
  return failed.length === 0 ? 0 : EXIT.failed;
}

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  const query = {
    ...(options.state === undefined ? {} : { state: options.state }),
    ...(options.template === undefined ? {} : { template: options.template }),
    ...metadataQuery(options),
  };
  await showList(context, options, listView, () => api.all("GET /v2/sandboxes", { query }, options.limit));
};

/** The metadata of `-l`, as the list takes it. */
export function metadataQuery({ selector }: Options): { readonly metadata?: string } {
  return selector === undefined ? {} : { metadata: new URLSearchParams(selector).toString() };
}

export const info: Action = async (context, { first: sandboxID }, options) => {
  const api = await context.api();
  const detail = await api.call("GET /sandboxes/{sandboxID}", { params: { sandboxID }, query: { ended: true } });
  if (options.output === "json" || options.output === "yaml") {
    await context.out.structured(withoutTokens(detail), options);
  } else await context.out.one(detailView, detail, options);
};

interface Tokens {
  readonly envdAccessToken?: string;
  readonly trafficAccessToken?: string | null;
}

/** They open everything in the sandbox, and its ports: they are no part of what people paste into reports. */
function withoutTokens<T extends Tokens>(sandbox: T): Omit<T, keyof Tokens> {
  const { envdAccessToken: _envd, trafficAccessToken: _traffic, ...shown } = sandbox;
  return shown;
}
