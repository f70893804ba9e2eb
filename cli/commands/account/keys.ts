/** API keys, and which one is in use. */

import type { Api, Item } from "../../api/client.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure, usage } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age, until } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";
import { each } from "../each.ts";

type Key = Item<"GET /api-keys">;

const maskOf = ({ mask }: Key) => `${mask.prefix}${mask.maskedValuePrefix}…${mask.maskedValueSuffix}`;

const view: View<Key> = {
  name: ({ id }) => `key/${id}`,
  columns: [
    { title: "NAME", of: ({ name }) => name },
    { title: "KEY", of: maskOf },
    { title: "SCOPES", of: ({ scopes }) => scopes.join(",") },
    { title: "AGE", of: ({ createdAt }) => age(createdAt), moving: true },
    { title: "LAST USED", of: ({ lastUsed }) => age(lastUsed), moving: true },
    {
      title: "EXPIRES IN",
      of: ({ expiresAt }) => ((expiresAt ?? null) === null ? "never" : until(expiresAt)),
      moving: true,
    },
    { title: "ID", of: ({ id }) => id },
  ],
};

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  await showList(context, options, view, () => api.call("GET /api-keys", {}));
};

const SCOPES = ["read", "sandboxes", "templates", "admin"] as const;
type Scope = (typeof SCOPES)[number];

export const create: Action = async (context, { first: name }, { scope, expires }) => {
  const wrong = scope?.find((word) => !SCOPES.includes(word as Scope));
  if (wrong !== undefined) throw usage(`'${wrong}' is no scope`, `there are ${SCOPES.join(", ")}`);
  const api = await context.api();
  const { key, id } = await api.call("POST /api-keys", {
    body: {
      name,
      ...(scope === undefined ? {} : { scopes: [...scope] as Scope[] }),
      ...(expires === undefined ? {} : { expiresAt: new Date(Date.now() + expires * 1000).toISOString() }),
    },
  });
  context.out.note(`key/${id} created; it is shown this once`);
  await context.out.line(key);
};

export const remove: Action = async (context, { rest }) => {
  const api = await context.api();
  const keys = await api.call("GET /api-keys", {});
  return each(context, rest, async (named) => {
    const found = keys.filter(({ id, name }) => id === named || name === named);
    const [first] = found;
    if (first === undefined) throw new Failure(`there is no key '${named}'`, { exitCode: EXIT.notFound });
    if (found.length > 1) throw usage(`${found.length} keys are called '${named}'`, "name the id of one");
    await api.call("DELETE /api-keys/{apiKeyID}", { params: { apiKeyID: first.id } });
    return `key/${first.id} revoked`;
  });
};

interface Who {
  readonly apiUrl: string;
  readonly settings: string;
  readonly version: string;
  readonly key: string;
  readonly name: string | null;
  readonly scopes: readonly string[] | null;
  readonly expiresAt: string | null;
  readonly isOperator: boolean;
}

const whoView: View<Who> = {
  name: ({ apiUrl }) => apiUrl,
  columns: [
    { title: "API", of: ({ apiUrl }) => apiUrl },
    { title: "SETTINGS", of: ({ settings }) => settings },
    { title: "VERSION", of: ({ version }) => version },
    { title: "KEY", of: ({ key }) => key },
    { title: "NAME", of: ({ name }) => name ?? "(the key may not read keys)" },
    { title: "SCOPES", of: ({ scopes }) => scopes?.join(",") ?? "" },
    { title: "EXPIRES", of: ({ expiresAt }) => expiresAt ?? "" },
    { title: "OPERATOR", of: ({ isOperator }) => (isOperator ? "yes" : "no token") },
  ],
};

export const whoami: Action = async (context, _args, options) => {
  const { apiUrl, source, apiKey = "", adminToken } = await context.settings();
  const api = await context.api();
  const { version } = await api.call("GET /version", {});
  const keys = await readableKeys(api);
  const own = keys?.find((key) => isOf(key, apiKey));
  const who: Who = {
    apiUrl,
    settings: source,
    version,
    key: masked(apiKey),
    name: own?.name ?? null,
    scopes: own?.scopes ?? null,
    expiresAt: own?.expiresAt ?? null,
    isOperator: adminToken !== undefined && (await isOperator(context)),
  };
  await context.out.one(whoView, who, options);
};

/** Undefined: the key works, and may not read keys. A key that does not work fails. */
async function readableKeys(api: Api): Promise<readonly Key[] | undefined> {
  try {
    return await api.call("GET /api-keys", {});
  } catch (error) {
    if (!(error instanceof Failure) || error.exitCode !== EXIT.refused) throw error;
    await api.call("GET /v2/sandboxes", { query: { limit: 1 } });
    return undefined;
  }
}

async function isOperator(context: Context): Promise<boolean> {
  const admin = await context.admin();
  return admin.call("GET /admin/sandboxes/running-counts", {}).then(
    () => true,
    () => false,
  );
}

/** A key has two prefixes that mean the same. */
const valueOf = (key: string) => key.slice(key.indexOf("_") + 1);
const masked = (key: string) => `${key.slice(0, key.indexOf("_") + 5)}…${key.slice(-4)}`;

function isOf({ mask }: Key, key: string): boolean {
  const value = valueOf(key);
  return value.startsWith(mask.maskedValuePrefix) && value.endsWith(mask.maskedValueSuffix);
}
