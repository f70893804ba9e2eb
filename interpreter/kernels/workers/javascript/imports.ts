/** Import declarations as assignments from `__svcImport`, which loads ES modules and CommonJS alike. Pure. */

import type { ImportDeclaration } from "acorn";
import type { Declared } from "./syntax.ts";

/** Global function of the worker: the module's namespace, with a function that finds a name in it. */
export const IMPORT = "__svcImport";

/** Global function of the worker: what `import(…)` is in a cell. */
export const IMPORT_NOW = "__svcImportNow";
/** Global object of the worker: what `import.meta` is in a cell. */
export const IMPORT_META = "__svcImportMeta";

/** Names become `var`, so that a cell with imports can run twice. */
export function importText({ specifiers, source }: ImportDeclaration, declared: Declared): string {
  const from = `await ${IMPORT}(${JSON.stringify(source.value)})`;
  const parts = specifiers.map((specifier) => {
    const { name } = specifier.local;
    declared.vars.push(name);
    if (specifier.type === "ImportNamespaceSpecifier") return `${name} = __module.all`;
    if (specifier.type === "ImportDefaultSpecifier") return `${name} = __module.get("default")`;
    const { imported } = specifier;
    const asked = imported.type === "Identifier" ? imported.name : String(imported.value);
    return `${name} = __module.get(${JSON.stringify(asked)}${declared.typed ? ", true" : ""})`;
  });
  if (parts.length === 0) return `void (${from});`;
  return `{ const __module = ${from}; ${parts.join("; ")}; }`;
}
