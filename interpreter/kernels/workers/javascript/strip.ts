/** Reads a cell of JavaScript or TypeScript as a script. The library that removes types is loaded when it is needed. */

import { type Script, scriptOf } from "./cell.ts";

/** JavaScript first: `a < b > (c)` means something else with types. What no parser can read stays as it is. @throws {SyntaxError} for TypeScript */
export async function readCell(code: string, language: string): Promise<Script> {
  try {
    return language === "typescript" ? scriptOf(await withoutTypes(code), true) : scriptOf(code);
  } catch (first) {
    try {
      return scriptOf(await withoutTypes(code), true);
    } catch (error) {
      // V8 says better what is wrong. When it takes the code, it is newer than the parsers.
      if (language !== "typescript") return { source: code, isAsync: false, hasValue: true };
      throw error instanceof Error ? error : first;
    }
  }
}

async function withoutTypes(code: string): Promise<string> {
  const { transform } = await import("sucrase");
  return transform(code, { transforms: ["typescript"], keepUnusedImports: true, disableESTransforms: true }).code;
}
