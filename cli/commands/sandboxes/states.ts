/** Changes the state of sandboxes: pause, resume, fork, rewind, timeout, kill. */

import type { Api } from "../../api/client.ts";
import type { Context } from "../../context.ts";
import type { Action } from "../../definition.ts";
import { usage } from "../../failure.ts";
import type { Options } from "../../options.ts";
import { secondsOf } from "../../output/time.ts";
import { each } from "../each.ts";
import { metadataQuery, started } from "./sandboxes.ts";

const memoryOf = ({ memory }: Options) => (memory === false ? { memory: false } : {});
const timeoutOf = ({ timeout }: Options) => (timeout === undefined ? {} : { timeout });

export const pause: Action = async (context, { rest }, options) => {
  const api = await context.api();
  return each(context, await chosen(context, api, rest, { ...options, state: "running" }), async (sandboxID) => {
    await api.call("POST /sandboxes/{sandboxID}/pause", { params: { sandboxID }, body: memoryOf(options) });
    return `sandbox/${sandboxID} paused`;
  });
};

export const resume: Action = async (context, { rest }, options) => {
  const api = await context.api();
  return each(context, await chosen(context, api, rest, { ...options, state: "paused" }), async (sandboxID) => {
    const body = { ...timeoutOf(options), ...memoryOf(options) };
    await api.call("POST /v2/sandboxes/{sandboxID}/connect", { params: { sandboxID }, body });
    return `sandbox/${sandboxID} running`;
  });
};

export const fork: Action = async (context, { first: sandboxID }, options) => {
  const api = await context.api();
  const results = await api.call("POST /sandboxes/{sandboxID}/fork", {
    params: { sandboxID },
    body: {
      ...(options.count === undefined ? {} : { count: options.count }),
      ...timeoutOf(options),
      ...memoryOf(options),
    },
  });
  return started(context, results, options);
};

export const rewind: Action = async (context, { first: sandboxID, second: snapshotID }, options) => {
  const api = await context.api();
  const body = { snapshotID, ...timeoutOf(options), ...memoryOf(options) };
  await api.call("POST /sandboxes/{sandboxID}/rewind", { params: { sandboxID }, body });
  await context.out.line(`sandbox/${sandboxID} is at ${snapshotID}`);
};

export const setTimeout: Action = async (context, { first: sandboxID, second }) => {
  const timeout = secondsOf(second);
  if (timeout === undefined) throw usage(`'${second}' is no duration`, "write 90s, 5m or 2h30m");
  const api = await context.api();
  await api.call("POST /sandboxes/{sandboxID}/timeout", { params: { sandboxID }, body: { timeout } });
  await context.out.line(`sandbox/${sandboxID} ends in ${second}`);
};

export const kill: Action = async (context, { rest }, options) => {
  const api = await context.api();
  return each(context, await chosen(context, api, rest, options), async (sandboxID) => {
    await api.call("DELETE /sandboxes/{sandboxID}", { params: { sandboxID } });
    return `sandbox/${sandboxID} killed`;
  });
};

/** Those that are named, or with `-l` those with that metadata, in the state where one is given. */
async function chosen(
  { out }: Context,
  api: Api,
  ids: readonly string[],
  options: Pick<Options, "selector" | "state">,
): Promise<readonly string[]> {
  if (options.selector === undefined) {
    if (ids.length === 0) throw usage("no sandbox is named", "name their ids, or some metadata with -l");
    return ids;
  }
  if (ids.length > 0) throw usage("ids and -l exclude each other");
  const state = options.state === undefined ? {} : { state: options.state };
  const found = await api.all("GET /v2/sandboxes", { query: { ...state, ...metadataQuery(options) } });
  if (found.length === 0) out.note("Nothing found.");
  return found.map(({ sandboxID }) => sandboxID);
}
