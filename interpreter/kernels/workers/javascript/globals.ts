/** What cells find beside Node's own globals: `require` and imports from the working directory, `import.meta`, `$$`. */

import { createRequire, isBuiltin } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { constants, Script } from "node:vm";
import { helper, type Mimes } from "./bundle.ts";
import { IMPORT, IMPORT_META, IMPORT_NOW } from "./imports.ts";

export function defineGlobals(directory: string, send: (bundle: Mimes, main: boolean) => void): void {
  const file = join(directory, "cell.js");
  const require = createRequire(file);
  const module = { exports: {}, id: ".", filename: file, path: directory };
  // A cell is the program: `if (require.main === module) main();` runs it, and the words of this worker are not its arguments.
  Object.assign(require, { main: module });
  process.argv.splice(1, process.argv.length, file);
  const load = importer(file, require);
  const values = {
    require,
    module,
    exports: module.exports,
    __filename: file,
    __dirname: directory,
    $$: helper(send),
    [IMPORT]: async (name: string) => {
      const all = await load(name);
      return { all, get: (wanted: string, optional = false) => nameIn(all, wanted, optional ? undefined : name) };
    },
    [IMPORT_NOW]: load,
    [IMPORT_META]: {
      url: pathToFileURL(file).href,
      filename: file,
      dirname: directory,
      main: true,
      resolve: (name: string) => urlOf(require.resolve(name)),
    },
  };
  for (const [name, value] of Object.entries(values))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
}

/** Loads as `import` does, and what that does not find (global packages, JSON, folders) as `require` does. */
function importer(file: string, require: NodeJS.Require): (name: string) => Promise<Record<string, unknown>> {
  const load = new Script("(name) => import(name)", {
    filename: pathToFileURL(file).href,
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext() as (name: string) => Promise<Record<string, unknown>>;
  return async (name) => {
    try {
      return await load(name);
    } catch (error) {
      // The module itself has failed: it must not run again.
      if (!(error instanceof Error && "code" in error && String(error.code).startsWith("ERR_"))) throw error;
      try {
        const value: unknown = require(name);
        return { ...(typeof value === "object" ? value : {}), default: value };
      } catch {
        throw error;
      }
    }
  };
}

function urlOf(path: string): string {
  if (isBuiltin(path)) return path.startsWith("node:") ? path : `node:${path}`;
  return pathToFileURL(path).href;
}

/**
 * A name of a module; of one in CommonJS also those that its `import` does not list.
 * @param module named in the error for a name that it lacks; absent: that is no error
 */
function nameIn(all: Record<string, unknown>, wanted: string, module: string | undefined): unknown {
  if (wanted in all) return all[wanted];
  const whole = all["default"];
  if (whole !== null && (typeof whole === "object" || typeof whole === "function") && wanted in whole)
    return Reflect.get(whole, wanted);
  if (module === undefined) return undefined;
  throw new SyntaxError(`The requested module '${module}' does not provide an export named '${wanted}'`);
}
