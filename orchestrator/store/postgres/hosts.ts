/** The servers that a PostgreSQL URL names: one, or several of which one is the primary. Pure. */

import { AppError } from "../../../shared/http/errors.ts";

/** Scheme and user; hosts; database and parameters. A password has no `/`, `?` or `#` that is not escaped. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/s;

/**
 * A URL for each server of `postgresql://user:password@first:5432,second:5432/database`, in that order. The library knows
 * one server for each connection. @throws {AppError} internal, for a list with an empty name
 */
export function urlsOfHosts(url: string): [string, ...string[]] {
  const [, before = "", hosts = "", after = ""] = PARTS.exec(url) ?? [];
  if (!hosts.includes(",")) return [url];
  const urls = hosts.split(",").map((host) => {
    if (host === "" || host.startsWith(":")) {
      throw new AppError("internal", `DATABASE_URL names the servers '${hosts}', of which one has no name`);
    }
    return `${before}${host}${after}`;
  });
  return urls as [string, ...string[]];
}
