/** Pure: makes a client's path absolute. envd is root inside; no path is refused here. */

import { posix } from "node:path";
import type { User } from "./users.ts";

/**
 * Absolute: cleaned. `~` and `~/x`: the user's home. Relative and empty: from the default work directory where one is
 * set, else from the user's home. Does not check whether the path exists.
 */
export function resolvePath(path: string, user: User, workdir: string | undefined): string {
  if (posix.isAbsolute(path)) return clean(path);
  if (path === "~" || path.startsWith("~/")) return clean(posix.join(user.home, path.slice(1)));
  const base = workdir === undefined || workdir === "" ? user.home : resolvePath(workdir, user, undefined);
  return clean(posix.join("/", base, path));
}

/** Dots and doubled slashes resolved, no slash at the end. */
function clean(path: string): string {
  const normal = posix.normalize(path);
  return normal.length > 1 && normal.endsWith("/") ? normal.slice(0, -1) : normal;
}
