/** Contexts: the platforms of a user who works with several. */

import { type ContextEntry, checkedName, contextsFile, readContexts, writeContexts } from "../../api/contexts.ts";
import { readKey } from "../../api/hidden.ts";
import { checkedUrl, namedInEnvironment } from "../../api/settings.ts";
import { readValue } from "../../api/value.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import type { Options } from "../../options.ts";
import type { View } from "../../output/output.ts";
import { showList } from "../../output/watch.ts";

interface Shown {
  readonly name: string;
  readonly current: boolean;
  readonly apiUrl: string;
  readonly sandboxUrl: string;
  readonly hasAdminToken: boolean;
}

const view: View<Shown> = {
  name: ({ name }) => `context/${name}`,
  columns: [
    { title: "CURRENT", of: ({ current }) => (current ? "*" : "") },
    { title: "NAME", of: ({ name }) => name },
    { title: "API", of: ({ apiUrl }) => apiUrl },
    { title: "SANDBOXES", of: ({ sandboxUrl }) => sandboxUrl },
    { title: "OPERATOR", of: ({ hasAdminToken }) => (hasAdminToken ? "yes" : "no") },
  ],
};

export const add: Action = async (context, { first }, options) => {
  const name = checkedName(first);
  const { apiUrl, domain } = placeOf(options);
  if (apiUrl === undefined && domain === undefined) throw usage("--api-url or --domain is needed");
  const known = await readContexts(context.env);
  const apiKey = await readKey(context, options.keyFile, apiUrl ?? `https://api.${domain ?? ""}`);
  const adminToken =
    options.tokenFile === undefined
      ? undefined
      : (await readValue(context, options.tokenFile, "operators' token")).split(/\s/, 1)[0];
  const entry: ContextEntry = {
    ...placeOf(options),
    apiKey,
    ...(adminToken === undefined ? {} : { adminToken }),
  };
  await writeContexts(context.env, { current: name, contexts: { ...known.contexts, [name]: entry } });
  context.out.note(`context ${name} is the current one; ${contextsFile(context.env)} has it`);
  noteEnvironment(context, name);
  if (domain === undefined) return;
  await context.out.line(`export E2B_DOMAIN=${domain}`, "export E2B_API_KEY=…  # the key that you have stored");
};

export const list: Action = async (context, _args, options) => {
  await showList(context, options, view, async () => {
    const { current, contexts } = await readContexts(context.env);
    return Object.entries(contexts).map(([name, { apiUrl, sandboxUrl, domain, adminToken }]) => ({
      name,
      current: name === current,
      apiUrl: apiUrl ?? `https://api.${domain ?? ""}`,
      sandboxUrl: sandboxUrl ?? `https://PORT-ID.${domain ?? "…"}`,
      hasAdminToken: adminToken !== undefined,
    }));
  });
};

export const use: Action = async (context, { first: name }) => {
  const { contexts } = await readContexts(context.env);
  if (name !== "-" && contexts[name] === undefined) throw missing(name);
  await writeContexts(context.env, { current: name === "-" ? undefined : name, contexts });
  context.out.note(name === "-" ? "no context is the current one" : `context ${name} is the current one`);
  if (name !== "-") noteEnvironment(context, name);
};

export const remove: Action = async (context, { first: name }) => {
  const { current, contexts } = await readContexts(context.env);
  const { [name]: removed, ...others } = contexts;
  if (removed === undefined) throw missing(name);
  await writeContexts(context.env, { current: current === name ? undefined : current, contexts: others });
  context.out.note(`context ${name} is forgotten`);
};

/** What the command line names: an address that is none would be stored, and fail at every command after that. */
export function placeOf({ apiUrl, sandboxUrl, domain }: Options): ContextEntry {
  return {
    ...(apiUrl === undefined ? {} : { apiUrl: checkedUrl(apiUrl, "API") }),
    ...(sandboxUrl === undefined ? {} : { sandboxUrl: checkedUrl(sandboxUrl, "sandboxes") }),
    ...(domain === undefined ? {} : { domain }),
  };
}

/** Variables that name a platform or a key override the context. The note names them, because a person may have set them long ago. */
export function noteEnvironment({ env, out }: Pick<Context, "env" | "out">, name: string): void {
  const set = namedInEnvironment(env);
  if (set.length > 0) out.note(`the environment counts more: unset ${set.join(", ")}, or say --context ${name}`);
}

function missing(name: string): Failure {
  return new Failure(`there is no context '${name}'`, {
    exitCode: EXIT.notFound,
    wayOut: "`svc context list` shows them",
  });
}
