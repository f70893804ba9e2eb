/** Scopes of API keys: what a key may do in its project, and which scope each route needs. Pure. */

/**
 * `read`: every GET. `sandboxes`, `templates`: change these, and read them. `admin`: manages keys, secrets, webhooks and
 * the project, deletes volumes, and reads these.
 */
export const SCOPES = ["read", "sandboxes", "templates", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** The scope that changes what the routes of a tag are about. A tag that is not listed needs `admin`. */
const AREAS: Readonly<Record<string, Scope>> = {
  Sandboxes: "sandboxes",
  Snapshots: "sandboxes",
  Events: "sandboxes",
  Volumes: "sandboxes",
  Templates: "templates",
  Tags: "templates",
  Dashboard: "templates",
};

/** What decides of a route (`contract.ts`). */
interface Facts {
  readonly method: string;
  readonly tag: string;
  readonly access: string;
  readonly scope?: Scope;
}

/** The scope that an API key needs for the route. Undefined: the route takes no API key. */
export function scopeOf({ method, tag, access, scope }: Facts): Scope | undefined {
  if (access !== "project") return undefined;
  if (scope !== undefined) return scope;
  if (method === "GET") return "read";
  if (tag === "Volumes" && method === "DELETE") return "admin";
  return AREAS[tag] ?? "admin";
}

/** The scope that a key with these scopes lacks for the route; undefined when it may call the route. */
export function lackedScope(scopes: readonly Scope[], route: Facts): Scope | undefined {
  const needed = scopeOf(route);
  if (needed === undefined || scopes.includes(needed)) return undefined;
  return needed === "read" && scopes.includes(AREAS[route.tag] ?? "admin") ? undefined : needed;
}
