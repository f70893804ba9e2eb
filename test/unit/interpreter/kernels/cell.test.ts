import { type Context, createContext, runInContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { type Script, scriptOf } from "../../../../interpreter/kernels/workers/javascript/cell.ts";
import { readCell } from "../../../../interpreter/kernels/workers/javascript/strip.ts";

const world = () => createContext({ __svcImport: async (name: string) => moduleOf(name) });
const moduleOf = (name: string) => {
  const all: Record<string, unknown> = { default: `${name} default`, a: `${name} a`, "b-c": `${name} b-c` };
  return Promise.resolve({ all, get: (wanted: string) => all[wanted] });
};
/** The result of each cell, one after the other in the same context. */
const results = async (cells: readonly string[], context: Context = world()) => {
  const all: unknown[] = [];
  for (const cell of cells) all.push(await valueOf(scriptOf(cell), context));
  return all;
};
const valueOf = async ({ source, hasValue }: Script, context: Context) => {
  const value: unknown = await runInContext(source, context);
  return hasValue ? value : undefined;
};

test("a cell that neither imports nor awaits stays as it is", () => {
  for (const code of ["const a = 1; a", "async () => await x", "class A { async b() { await c } }", ""])
    expect(scriptOf(code)).toMatchObject({ source: code, isAsync: false });
});

test.each([
  ["1 + 1", 2],
  ["const a = 1", undefined],
  ["1; function f() {}", undefined],
  ["if (true) { 5 }", 5],
  ["await 5", 5],
  ["Promise.resolve(6)", 6],
  ["await 1; const a = 2", undefined],
  ["await 1\n'x' // why\n", "x"],
  ["await 1; ({ a: 1 }).a", 1],
  ["(await 1)", 1],
  ["((await 1) + 1) // why\n;", 2],
  ["for await (const x of [1]) x", undefined],
  ["await 1; if (true) { f() } else g()\nfunction f() { return 7 }", undefined],
  ["await 1; if (false) f(); else { 8 }", 8],
])("the result of %j is %j", async (code, value) => {
  expect(await results([code])).toEqual([value]);
});

describe("declarations of a cell that awaits", () => {
  test.each([
    ["const a = await 1, { b, c: [d = 4, ...e], ...f } = { b: 2, c: [undefined, 5, 6], g: 7 }", "[a, b, d, e, f.g]"],
    ["let a = await 1, b\nvar c\n;[a, b, c]", "[a, b, c]"],
    ["await 0; function f() { return 1 }\nasync function* g() {}", "[f(), typeof g]"],
    ["await 0; class A { static x = 1 }\nA.x", "[A.x]"],
    ["for (var i = 0, n; i < 3; i++) await 0", "[i, n]"],
    ["for (var k of [1, 2]) await k", "[k]"],
    ["for (var [p, q] of [[1, 2]]) await p", "[p, q]"],
    ["for (var m in { x: 1 }) await m", "[m]"],
    ["if (await true) var t = 1\nelse var u = 2", "[t, u]"],
    ["{ await 0\nvar v = 1 }", "[v]"],
    ["try { await 0; var w = 1 } catch { var z = 2 }", "[w, z]"],
    ["let x\n(await 0)", "[x]"],
  ])("persist: %j", async (code, names) => {
    const [, awaited] = await results([code, names]);
    const plain = await results([code.replaceAll(/for await|await /g, ""), names]);
    expect(awaited).toEqual(plain[1]);
  });

  test("that are let or const cannot be declared twice", async () => {
    await expect(results(["const a = await 1", "const a = await 2"])).rejects.toThrow(/already been declared/);
  });

  test("in functions and blocks stay there", async () => {
    expect(await results(["{ let a = await 1 }\nfunction f() { var b = 2 }", "[typeof a, typeof b]"])).toEqual([
      undefined,
      ["undefined", "undefined"],
    ]);
  });
});

test("imports bind every form of name, and can be repeated", async () => {
  const imports = 'import d, { a, a as x, "b-c" as y, default as z } from "m"\nimport * as n from "k"\nimport "s"';
  expect(await results([imports, imports, "[d, a, x, y, z, n.a]"])).toEqual([
    undefined,
    undefined,
    ["m default", "m a", "m a", "m b-c", "m default", "k a"],
  ]);
});

test("exports of a cell become what they declare", async () => {
  expect(await results(["export const a = 1; export default a; export { a as b }", "a"])).toEqual([undefined, 1]);
});

test("the line numbers of a cell do not change", async () => {
  const code = "import {\n a,\n} from 'm'\nconst b = await\n1\nthrow new Error('here')";
  const script = scriptOf(code);
  const run = async () => (await runInContext(script.source, world(), { filename: "cell.js" })) as unknown;
  await expect(run()).rejects.toMatchObject({ stack: expect.stringContaining("cell.js:6:") as string });
});

test("a program that is started in its last statement is waited for", async () => {
  for (const start of ["main()", "if (true) main();", "if (true) {\n  main()\n}", "if (false) 1; else main()"]) {
    const cell = `import "m"; let done = false; ${start}\nasync function main() { for (let n = 0; n < 99; n += 1) await null; done = true }`;
    expect(await results([cell, "done"])).toEqual([undefined, true]);
  }
});

test("import.meta and import(…) are there in scripts, too, wherever they are", async () => {
  const context = world();
  Object.assign(context, { __svcImportMeta: { url: "u" }, __svcImportNow: async (name: string) => `now ${name}` });
  const cells = [
    "import.meta.url",
    "const u = () => import.meta.url; u()",
    'import { a } from "m"; a + import.meta.url',
    'await import("x")',
    'const load = () => import("y" + import.meta.url); load()',
    'const b = await import("z"); b',
    "function F() { return new.target === undefined } F()",
  ];
  expect(await results(cells, context)).toEqual(["u", "u", "m au", "now x", "now yu", "now z", true]);
});

describe("types", () => {
  test("that are imported as if they were values are no error", async () => {
    const get = async (code: string, language: string) => (await readCell(code, language)).source;
    const code = 'import { Request } from "m"';
    expect(await get(code, "typescript")).toContain('get("Request", true)');
    expect(await get(`${code}; let r: Request`, "javascript")).toContain('get("Request", true)');
    expect(await get(code, "javascript")).toContain('get("Request")');
  });

  const typed = "interface A { x: number }\nenum E { B, C }\nconst q = <T,>(a: T) => a as unknown\nq(E.C)";

  test("are removed in both languages", async () => {
    for (const language of ["javascript", "typescript"])
      expect(await valueOf(await readCell(typed, language), world())).toBe(1);
  });

  test("are not seen in what is good JavaScript", async () => {
    const { source } = await readCell("f(a < b, c > (d))", "javascript");
    expect(source).toBe("f(a < b, c > (d))");
  });

  test("an import of a value stays though nothing uses it", async () => {
    expect((await readCell('import { a } from "m"; let b: number', "typescript")).source).toContain("__svcImport");
  });

  test("of code that cannot be read are an error of TypeScript, and V8's of JavaScript", async () => {
    await expect(readCell("let x: = 5", "typescript")).rejects.toThrow(SyntaxError);
    expect(await readCell("foo(", "javascript")).toMatchObject({ source: "foo(", isAsync: false });
  });
});
