/** How often callers may ask, by kind of route, and how often with refused credentials. Pure. */

import type { Route } from "../../shared/http/contract.ts";
import type { OrchestratorConfig } from "../config.ts";
import type { AuthDeps } from "./auth.ts";
import type { Rate } from "./rate-limit.ts";

export function ratesOf(config: OrchestratorConfig): Pick<AuthDeps, "rate" | "refusedRate" | "refusedInAll"> {
  return {
    rate: (route) => rateOf(route, config),
    refusedRate: perMinute(config.rateLimitFailedAuthPerMinute),
    refusedInAll: perMinute(10 * config.rateLimitFailedAuthPerMinute),
  };
}

function perMinute(count: number): Rate {
  return { perSecond: count / 60, burst: count };
}

/** A start of a sandbox costs more than a read. */
function rateOf(route: Route, config: OrchestratorConfig): { readonly group: string; readonly rate: Rate } {
  const rate = (perSecond: number): Rate => ({ perSecond, burst: perSecond * 2 });
  if (route.access === "volume") return { group: "volume_content", rate: rate(config.rateLimitContentPerSecond) };
  if (route.method === "GET") return { group: "read", rate: rate(config.rateLimitReadPerSecond) };
  const starts = /^(\/v2)?\/sandboxes$|\/(fork|resume|rewind|connect)$/.test(route.path);
  if (route.method === "POST" && starts) return { group: "create", rate: rate(config.rateLimitCreatePerSecond) };
  return { group: "write", rate: rate(config.rateLimitWritePerSecond) };
}
