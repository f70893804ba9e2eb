/** Headers and failures between the edge and a node's proxy. No I/O. */

/** Port of envd in every sandbox. */
export const ENVD_PORT = 49_983;
/** Port of the code interpreter's server, which asks envd for the sandbox's variables with its caller's token. */
export const INTERPRETER_PORT = 49_999;

/** Authenticates the edge to the node proxy, and the node proxy to envd. */
export const NODE_TOKEN_HEADER = "Svc-Node-Token";
export const EXECUTION_HEADER = "Svc-Execution-Id";
export const SANDBOX_HEADER = "Svc-Sandbox-Id";
export const PORT_HEADER = "Svc-Sandbox-Port";
/** Present when the server speaks TLS. The value is the name for SNI, or `-`. */
export const TLS_HEADER = "Svc-Upstream-Tls";
/** Marks answers that the node proxy makes itself; removed from sandboxes' answers. */
export const PROXY_ERROR_HEADER = "svc-proxy-error";
/** Beside it: what was wrong with the server's answer, in words; or one of the reasons below. */
export const PROXY_REASON_HEADER = "svc-proxy-reason";
/** Of `held`: no orchestrator has answered the node in time, so its sandboxes are frozen. Absent: its disk is short. */
export const LEASE_REASON = "lease";
/** Of `removed` and `stopping`: the sandbox may have got the request before that. Absent: the request never reached it. */
export const UNDER_WAY_REASON = "under-way";

/** `stopping`: the proxy ends and the sandbox runs on. An edge of an earlier version passes that answer on as the sandbox's own. */
const PROXY_ERRORS = [
  "closed",
  "bad_response",
  "removed",
  "unauthorized",
  "unforwardable",
  "held",
  "stopping",
] as const;
export type ProxyError = (typeof PROXY_ERRORS)[number];

export function isProxyError(value: string): value is ProxyError {
  return (PROXY_ERRORS as readonly string[]).includes(value);
}

/** Headers for the edge and the node proxy: a user's server never gets them. Lower case. */
export const ROUTING_HEADERS: ReadonlySet<string> = new Set([
  "e2b-sandbox-id",
  "e2b-sandbox-port",
  EXECUTION_HEADER.toLowerCase(),
  NODE_TOKEN_HEADER.toLowerCase(),
  PORT_HEADER.toLowerCase(),
  PROXY_ERROR_HEADER,
  PROXY_REASON_HEADER,
  SANDBOX_HEADER.toLowerCase(),
  TLS_HEADER.toLowerCase(),
]);

/**
 * Name and value for the next hop. Values are ids, numbers and tokens of the platform.
 * @throws for a value with a character that a header cannot carry: a bug or a wrong setting
 */
export function field(name: string, value: string): readonly [string, string] {
  if (!/^[\x21-\x7e]+$/.test(value)) throw new Error(`header ${name} has a value that cannot be sent`);
  return [name, value];
}
