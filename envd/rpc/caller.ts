/** Reads the user of an RPC: named by Basic authentication, without a password. */

import type { HandlerContext } from "@connectrpc/connect";

/** `name` or `name:group`. Undefined where the request names no user; unreadable header values count as none. */
export function callerName(context: Pick<HandlerContext, "requestHeader">): string | undefined {
  const [scheme, credentials] = context.requestHeader.get("authorization")?.split(" ", 2) ?? [];
  if (scheme?.toLowerCase() !== "basic" || credentials === undefined) return undefined;
  const text = Buffer.from(credentials, "base64").toString("utf8");
  // Without a password the last colon ends the name (`6001:6001:`), otherwise the first.
  const name = text.endsWith(":") ? text.slice(0, -1) : (text.split(":", 1)[0] ?? "");
  return name === "" ? undefined : name;
}
