/** The operator's proxies to the internet: read from the settings, and the variables with which sandboxes use them. */

import { hostName } from "../../shared/policy/names.ts";
import { addressNumber } from "../../shared/policy/ranges.ts";
import type { AgentConfig } from "../config.ts";
import type { CompanyProxies, CompanyProxy } from "../egress/channel/messages.ts";

type ProxySettings = Pick<AgentConfig, "sandboxHttpProxy" | "sandboxHttpsProxy" | "sandboxNoProxy">;

/** Undefined: there is none. @throws {Error} that names the setting, and not its value, which may hold a password */
export function readCompanyProxies(config: ProxySettings): CompanyProxies | undefined {
  const { sandboxHttpProxy, sandboxHttpsProxy, sandboxNoProxy } = config;
  const http = sandboxHttpProxy === undefined ? {} : { http: parsed("SVC_SANDBOX_HTTP_PROXY", sandboxHttpProxy) };
  const https = sandboxHttpsProxy === undefined ? {} : { https: parsed("SVC_SANDBOX_HTTPS_PROXY", sandboxHttpsProxy) };
  if (sandboxHttpProxy !== undefined || sandboxHttpsProxy !== undefined) return { ...http, ...https };
  if (sandboxNoProxy !== "")
    throw new Error("SVC_SANDBOX_NO_PROXY needs SVC_SANDBOX_HTTP_PROXY or SVC_SANDBOX_HTTPS_PROXY");
  return undefined;
}

function parsed(setting: string, text: string): CompanyProxy {
  const wrong = (why: string) => new Error(`${setting} ${why}: it has the form http://[user:password@]host:port`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw wrong("is not an address");
  if (url.protocol !== "http:") throw wrong("is not the address of an HTTP proxy");
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "") throw wrong("has more than a host and a port");
  const host = addressNumber(url.hostname) === undefined ? hostName(url.hostname) : url.hostname;
  if (host === undefined) throw wrong("has a host that is neither a name nor an IPv4 address");
  const port = url.port === "" ? 80 : Number(url.port);
  if (port === 0) throw wrong("has no port");
  if (url.username === "") return { host, port };
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  return { host, port, authorization: `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}` };
}

/** Destinations inside the sandbox itself. */
const ITS_OWN = ["localhost", "127.0.0.1", "::1"];

/**
 * Variables for the programs in a sandbox, in both spellings. They name the node's own proxy: the company's and its
 * password stay outside.
 * @param at host:port of the egress process, as sandboxes reach it
 */
export function proxyVariables(
  proxies: CompanyProxies | undefined,
  { sandboxNoProxy }: Pick<ProxySettings, "sandboxNoProxy">,
  at: string,
): Readonly<Record<string, string>> {
  if (proxies === undefined) return {};
  const own = sandboxNoProxy.split(",").map((text) => text.trim());
  const values = {
    ...(proxies.http === undefined ? {} : { http_proxy: `http://${at}` }),
    ...(proxies.https === undefined ? {} : { https_proxy: `http://${at}` }),
    no_proxy: [...new Set([...ITS_OWN, ...own])].filter((text) => text !== "").join(","),
  };
  const both = Object.entries(values).flatMap(([name, value]) => [
    [name, value],
    [name.toUpperCase(), value],
  ]);
  // Node reads the others only with this one.
  return { ...Object.fromEntries(both), NODE_USE_ENV_PROXY: "1" } as Record<string, string>;
}
