/** Reads a cell of JavaScript or TypeScript as a script. The library that removes types is loaded when it is needed. */

import { Script as Compiled } from "node:vm";
import { type Script, scriptOf } from "./cell.ts";

/** JavaScript first: `a < b > (c)` means something else with types. @throws {SyntaxError} in V8's words */
export async function readCell(code: string, language: string): Promise<Script> {
  try {
    return language === "typescript" ? scriptOf(await withoutTypes(code)) : scriptOf(code);
  } catch (first) {
    try {
      return scriptOf(await withoutTypes(code));
    } catch (error) {
      // V8 says more than the parsers. When it takes the code, it is newer than they are.
      if (language !== "typescript") return compiled(code);
      throw error instanceof Error ? error : first;
    }
  }
}

async function withoutTypes(code: string): Promise<string> {
  const { transform } = await import("sucrase");
  return transform(code, { transforms: ["typescript"], keepUnusedImports: true, disableESTransforms: true }).code;
}

function compiled(code: string): Script {
  new Compiled(code, { filename: "cell.js" });
  return { source: code, isAsync: false, hasValue: true };
}
