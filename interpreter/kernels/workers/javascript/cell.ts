/**
 * Turns a cell into a script whose declarations persist. A cell that imports or awaits becomes an async function behind
 * declarations; any other cell stays as it is, but for `import.meta` and `import(…)`. Line numbers do not change. Pure.
 */

import { type AnyNode, type Identifier, type Node, type Options, type Program, parse } from "acorn";
import { Edits } from "./edits.ts";
import { IMPORT_META, IMPORT_NOW, importText } from "./imports.ts";
import { awaits, type Declared, moduleOnly, namesOf, nestedVars } from "./syntax.ts";

export interface Script {
  readonly source: string;
  /** Its value is a promise: of the last expression, or of undefined. */
  readonly isAsync: boolean;
  /** Whether its value is a result: one that ends in a declaration has none. */
  readonly hasValue: boolean;
}

const OPTIONS: Options = {
  ecmaVersion: "latest",
  sourceType: "script",
  allowAwaitOutsideFunction: true,
  allowImportExportEverywhere: true,
  allowHashBang: true,
};

/**
 * @param typed the code had types: a name that it imports may be one, which no module has when it runs
 * @throws {SyntaxError} of the parser for JavaScript that it cannot read
 */
export function scriptOf(code: string, typed = false): Script {
  const program = parse(code, OPTIONS);
  const last = program.body.at(-1);
  if (program.body.some(isModuleSyntax) || awaits(program)) return asyncScript(code, program, typed);
  const edits = new Edits(code);
  replaceModuleOnly(program, edits);
  return { source: edits.applied(), isAsync: false, hasValue: last !== undefined && !isDeclaration(last) };
}

function asyncScript(code: string, program: Program, typed: boolean): Script {
  const edits = new Edits(code);
  const declared: Declared = { lets: [], vars: [], functions: [], typed };
  for (const statement of program.body) hoist(statement, edits, declared);
  // Functions behind it are hoisted: `main(); async function main() {…}` is waited for as in other cells.
  const last = program.body.findLast(({ type }) => type !== "FunctionDeclaration");
  const values = last === undefined ? [] : valuesOf(last);
  for (const { start, end } of values) {
    // The statement's own bounds: those of its expression leave out brackets around it.
    edits.insert(start, "return (");
    if (code[end - 1] === ";") edits.insert(end - 1, ")");
    else edits.insert(end, ");");
  }
  const hasValue = values.length > 0 && last === program.body.at(-1);
  replaceModuleOnly(program, edits);
  const outside = [
    ...(declared.lets.length > 0 ? [`let ${declared.lets.join(", ")};`] : []),
    ...(declared.vars.length > 0 ? [`var ${[...new Set(declared.vars)].join(", ")};`] : []),
    ...(declared.functions.length > 0 ? [`var ${declared.functions.join(", ")};`] : []),
  ];
  const inside = declared.functions.map((name) => `globalThis.${name} = ${name};`);
  const source = `${outside.join(" ")}(async () => {${inside.join(" ")}${edits.applied()}\n})()`;
  return { source, isAsync: true, hasValue };
}

/** Statements whose value is the one of a last statement: `if (…) main();` is the program, and its promise is waited for. */
function valuesOf(statement: Node): Node[] {
  const node = statement as AnyNode;
  switch (node.type) {
    case "ExpressionStatement":
      return [node];
    case "BlockStatement":
      return node.body.slice(-1).flatMap(valuesOf);
    case "IfStatement":
      return [
        node.consequent,
        ...(node.alternate === null || node.alternate === undefined ? [] : [node.alternate]),
      ].flatMap(valuesOf);
    default:
      return [];
  }
}

/** After all other edits, which come first where they begin at the same place. */
function replaceModuleOnly(program: Program, edits: Edits): void {
  for (const node of moduleOnly(program)) {
    if (node.type === "MetaProperty") edits.replace(node.start, node.end, IMPORT_META);
    else edits.replace(node.start, node.start + "import".length, IMPORT_NOW);
  }
}

/** Moves what a top-level statement declares out of the function that the cell becomes. */
function hoist(statement: Node, edits: Edits, declared: Declared): void {
  const node = statement as AnyNode;
  switch (node.type) {
    case "ImportDeclaration":
      edits.replace(node.start, node.end, importText(node, declared));
      return;
    case "ExportNamedDeclaration":
      if (node.declaration === null || node.declaration === undefined) edits.replace(node.start, node.end, ";");
      else {
        edits.replace(node.start, node.declaration.start, "");
        hoist(node.declaration, edits, declared);
      }
      return;
    case "ExportDefaultDeclaration":
      edits.replace(node.start, node.declaration.start, "void ");
      return;
    case "ExportAllDeclaration":
      edits.replace(node.start, node.end, ";");
      return;
    case "FunctionDeclaration":
      declared.functions.push(nameOf(node));
      return;
    case "ClassDeclaration":
      declared.lets.push(nameOf(node));
      edits.insert(node.start, `${nameOf(node)} = `);
      edits.insert(node.end, ";");
      return;
    case "VariableDeclaration":
      (node.kind === "var" ? declared.vars : declared.lets).push(...node.declarations.flatMap(({ id }) => namesOf(id)));
      edits.assignments(node, { isStatement: true, keepsUndefined: node.kind === "var" });
      return;
    default:
      for (const { declaration, isStatement } of nestedVars(node)) {
        declared.vars.push(...declaration.declarations.flatMap(({ id }) => namesOf(id)));
        edits.assignments(declaration, { isStatement, keepsUndefined: true });
      }
  }
}

/** A declaration that is a statement has a name: only one that is exported by default can be without. */
function nameOf({ id }: { readonly id?: Identifier | null }): string {
  return id?.name ?? "";
}

function isModuleSyntax({ type }: Node): boolean {
  return type === "ImportDeclaration" || type.startsWith("Export");
}

function isDeclaration({ type }: Node): boolean {
  return type.endsWith("Declaration");
}
