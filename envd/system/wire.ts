/** Constructs the user database and the connection to svc-exec, which starts with its first use. */

import { System } from "./system.ts";
import { Users } from "./users.ts";

interface SystemConfig {
  /** Path of the svc-exec program. */
  readonly helper: string;
  readonly root: string;
}

export function createSystem({ helper, root }: SystemConfig): { readonly users: Users; readonly system: System } {
  return { users: new Users(`${root === "/" ? "" : root}/etc`), system: new System(helper) };
}
