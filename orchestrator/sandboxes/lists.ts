/** Reads queries and cursors of sandbox lists from their wire form. Pure. */

import { AppError } from "../../shared/http/errors.ts";
import type { SandboxState } from "../../shared/states/sandbox-state.ts";
import { iso } from "../forms/time.ts";
import type { Position } from "../store/sandboxes/lists.ts";

export type Shown = "running" | "paused" | "ended";
export type Order = "asc" | "desc";

/** Stored states behind each shown state (sandbox-state.ts `shownState`). */
export const STATES: Readonly<Record<Shown, readonly SandboxState[]>> = {
  running: ["running", "snapshotting", "rewinding"],
  paused: ["pausing", "paused"],
  ended: ["gone"],
};

/** `running,paused,ended`; absent: those that have not ended. */
export function parseStates(text: string | undefined): readonly Shown[] {
  if (text === undefined) return ["running", "paused"];
  const states = text.split(",").map((state) => state.trim());
  return states.map((state) => {
    if (state === "running" || state === "paused" || state === "ended") return state;
    throw new AppError("bad_request", "query field 'state' must be a list of running, paused, ended");
  });
}

/** Pairs joined by &, percent-encoded as a whole and again each part (SDKs encode three times in all). */
export function parseMetadata(text: string | undefined): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  if (text === undefined || text === "") return pairs;
  for (const pair of decoded(text).split("&")) {
    if (pair === "") continue;
    const at = pair.indexOf("=");
    if (at <= 0) throw new AppError("bad_request", "query field 'metadata' must be pairs key=value joined by &");
    const [key, value] = [decoded(pair.slice(0, at)), decoded(pair.slice(at + 1))];
    // Every pair must match, and a sandbox has one value.
    if (pairs.has(key) && pairs.get(key) !== value) {
      throw new AppError("bad_request", `query field 'metadata' names '${key.slice(0, 128)}' with two values`);
    }
    pairs.set(key, value);
  }
  if (pairs.size > 64) throw new AppError("bad_request", "query field 'metadata' must not have more than 64 pairs");
  return pairs;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", "%20"));
  } catch {
    throw new AppError("bad_request", "query field 'metadata' is not percent-encoded properly");
  }
}

/** base64url of `<start time>__<id>`, with `__asc` for ascending. */
export function toToken({ startedAt, id }: Position, order: Order): string {
  return Buffer.from(`${iso(startedAt)}__${id}${order === "asc" ? "__asc" : ""}`).toString("base64url");
}

/** @throws {AppError} bad_request for a damaged token and for a token of the other order. */
export function fromToken(token: string | undefined, order: Order): Position | undefined {
  if (token === undefined || token === "") return undefined;
  const text = Buffer.from(token, "base64url").toString("utf8");
  const match = /^(\d{4}-[0-9T:.-]+Z)__([a-z0-9]{1,64})(__asc)?$/.exec(text);
  const startedAt = Date.parse(match?.[1] ?? "");
  const id = match?.[2];
  const tokenOrder: Order = match?.[3] === undefined ? "desc" : "asc";
  if (id === undefined || Number.isNaN(startedAt) || tokenOrder !== order) {
    throw new AppError("bad_request", "Invalid next token");
  }
  return { startedAt, id };
}
