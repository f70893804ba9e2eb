/** Reads the user of an RPC: named by Basic authentication, without a password. */

import type { HandlerContext } from "@connectrpc/connect";

/** Undefined where the request names no user; unreadable header values count as none. */
export function callerName(context: Pick<HandlerContext, "requestHeader">): string | undefined {
  const [scheme, credentials] = context.requestHeader.get("authorization")?.split(" ", 2) ?? [];
  if (scheme?.toLowerCase() !== "basic" || credentials === undefined) return undefined;
  const [name] = Buffer.from(credentials, "base64").toString("utf8").split(":", 1);
  return name === "" ? undefined : name;
}
