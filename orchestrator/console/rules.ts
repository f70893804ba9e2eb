/** Which requests the console answers: for its own host names, and changes only from its own page. Pure. */

import { isIP } from "node:net";
import { AppError } from "../../shared/http/errors.ts";

/** The parts of a request that these rules read. */
interface Asked {
  readonly method: string;
  /** `name:port`. */
  readonly host: string;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
}

/**
 * A page of another site whose name an attacker has pointed at this machine has that name as its host, so only names
 * that nobody else can point here are answered: addresses, `localhost`, and those of the settings.
 * @throws {AppError} forbidden
 */
export function checkHost({ host }: Pick<Asked, "host">, allowed: ReadonlySet<string>): void {
  const name = nameOf(host);
  if (name === "localhost" || isIP(name) !== 0 || allowed.has(name)) return;
  throw new AppError("forbidden", `the console does not answer at '${name}': list the name in SVC_CONSOLE_HOSTS`);
}

/**
 * The console's API is for its own page. Browsers say which site a request is from, and a page cannot change what they say.
 * @throws {AppError} forbidden
 */
export function checkSite({ method, host, origin, fetchSite }: Asked): void {
  if (fetchSite !== undefined && fetchSite !== "same-origin")
    throw new AppError("forbidden", `the console's API answers its own page, and this request is ${fetchSite}`);
  if (method === "GET" || method === "HEAD") return;
  if (origin === undefined) throw new AppError("forbidden", "a change by the console needs the header Origin");
  if (!isAt(origin, host))
    throw new AppError(
      "forbidden",
      `a change by the console must come from its own page, at '${host}' by the header Host, and not from '${origin}': a proxy in front must leave Host as the browser sends it`,
    );
}

/** Names of hosts from a setting, and of the platform's public address where it has one. */
export function allowedNames(hosts: string, publicUrl: string | undefined): ReadonlySet<string> {
  const named = hosts.split(",").map((name) => name.trim().toLowerCase());
  return new Set([...named, ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])].filter((name) => name));
}

/** False for `null` and whatever else is no origin of a page. */
function isAt(origin: string, host: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, host: own } = new URL(origin);
  return own === withoutDefaultPort(protocol, host.toLowerCase());
}

/** Browsers leave the port of the scheme out, and some proxies put it there: nginx with `Host $host:$server_port`. */
function withoutDefaultPort(protocol: string, host: string): string {
  if (protocol === "https:") return host.replace(/:443$/, "");
  return protocol === "http:" ? host.replace(/:80$/, "") : host;
}

function nameOf(host: string): string {
  const name = host.toLowerCase().replace(/:\d+$/, "");
  return name.replace(/^\[|\]$/g, "");
}
