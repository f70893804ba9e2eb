/** The connections that `fetch` of this process keeps for its next requests. */

import type { Dispatcher } from "undici";

/** Where Node's own fetch finds its pool, as undici documents it for `setGlobalDispatcher`. */
const POOL = Symbol.for("undici.globalDispatcher.1");

/**
 * Makes the next `fetch` use connections of its own. A helper that stops or restarts a server calls it first: otherwise a
 * request that follows at once may take a kept connection whose end this process has not seen yet. Requests on their way end
 * as they would.
 */
export function forgetKeptConnections(): void {
  const pool = Reflect.get(globalThis, POOL) as Dispatcher | undefined;
  if (pool === undefined) return;
  const Pool = pool.constructor as new () => Dispatcher;
  Reflect.set(globalThis, POOL, new Pool());
  pool.close().catch(() => undefined);
}
