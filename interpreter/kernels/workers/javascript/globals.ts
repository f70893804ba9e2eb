/** What cells find beside Node's own globals: `require` and imports from the working directory, `$$`. */

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { constants, Script } from "node:vm";
import { helper, type Mimes } from "./bundle.ts";
import { IMPORT } from "./imports.ts";

export function defineGlobals(directory: string, send: (bundle: Mimes, main: boolean) => void): void {
  const file = join(directory, "cell.js");
  const require = createRequire(file);
  const module = { exports: {} };
  const values = {
    require,
    module,
    exports: module.exports,
    __filename: file,
    __dirname: directory,
    $$: helper(send),
    [IMPORT]: importer(file, require),
  };
  for (const [name, value] of Object.entries(values))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/** Loads as `import` does, and what that does not find (global packages, JSON, folders) as `require` does. */
function importer(file: string, require: NodeJS.Require): (name: string) => Promise<object> {
  const load = new Script("(name) => import(name)", {
    filename: pathToFileURL(file).href,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext() as (name: string) => Promise<Record<string, unknown>>;
  return async (name) => {
    let all: Record<string, unknown>;
    try {
      all = await load(name);
    } catch (error) {
      try {
        const value: unknown = require(name);
        all = { ...(typeof value === "object" ? value : {}), default: value };
      } catch {
        throw error;
      }
    }
    return { all, get: (wanted: string) => nameIn(all, wanted, name) };
  };
}

/** A name of a module; of one in CommonJS also those that its `import` does not list. */
function nameIn(all: Record<string, unknown>, wanted: string, module: string): unknown {
  if (wanted in all) return all[wanted];
  const whole = all["default"];
  if (whole !== null && (typeof whole === "object" || typeof whole === "function") && wanted in whole)
    return Reflect.get(whole, wanted);
  throw new SyntaxError(`The requested module '${module}' does not provide an export named '${wanted}'`);
}
