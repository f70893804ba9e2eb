/** Stores an API key, once the platform has taken it. */

import { createApi } from "../../api/client.ts";
import { type ContextEntry, checkedName, contextsFile, readContexts, writeContexts } from "../../api/contexts.ts";
import { readKey } from "../../api/hidden.ts";
import { readSettings } from "../../api/settings.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { Failure, usage } from "../../failure.ts";
import type { Options } from "../../options.ts";
import { noteEnvironment, placeOf } from "./contexts.ts";

/** The context of a platform that has no name. */
const FIRST_NAME = "default";

export const login: Action = async (context, _args, options) => {
  const known = await readContexts(context.env);
  const name = checkedName(options.name ?? options.context ?? known.current ?? FIRST_NAME);
  const place = named(options) ?? known.contexts[name] ?? (await ofSettings(context));
  const apiKey = await checkedKey(context, options.keyFile, place.apiUrl ?? `https://api.${place.domain ?? ""}`);
  const entry = { ...place, apiKey };
  await check(context, entry);
  await writeContexts(context.env, { current: name, contexts: { ...known.contexts, [name]: entry } });
  context.out.note(`logged in; ${contextsFile(context.env)} has the key, in context ${name}, which is the current one`);
  noteEnvironment(context, name);
};

/** The platform that the command line names. */
function named(options: Options): ContextEntry | undefined {
  if (options.apiUrl !== undefined || options.domain !== undefined) return placeOf(options);
  if (options.sandboxUrl !== undefined) throw usage("--sandbox-url needs --api-url");
  return undefined;
}

async function ofSettings({ env }: Context): Promise<ContextEntry> {
  const { apiUrl, sandboxUrl, domain } = await readSettings(env, undefined);
  return {
    apiUrl,
    ...(sandboxUrl === undefined ? {} : { sandboxUrl }),
    ...(domain === undefined ? {} : { domain }),
  };
}

async function checkedKey(context: Context, file: string | undefined, url: string): Promise<string> {
  const key = await readKey(context, file, url);
  if (!/^[a-z0-9]+_[A-Za-z0-9]+$/.test(key.trim())) {
    throw new Failure("this is no API key", { wayOut: "a key looks like svc_…; `svc key create` makes one" });
  }
  return key.trim();
}

/** @throws {Failure} the platform does not take the key */
async function check(context: Context, { apiUrl, domain, apiKey = "" }: ContextEntry): Promise<void> {
  const url = (apiUrl ?? `https://api.${domain ?? ""}`).replace(/\/+$/, "");
  const { timeoutMs, signal } = context;
  const api = createApi({ url, headers: { "x-api-key": apiKey }, timeoutMs, signal });
  await api.call("GET /v2/sandboxes", { query: { limit: 1 } });
}
