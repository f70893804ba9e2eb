/** Questions about a syntax tree. Pure. */

import type { AnyNode, Node, Pattern, VariableDeclaration } from "acorn";

/** Names that a cell declares, by how they persist. */
export interface Declared {
  readonly lets: string[];
  readonly vars: string[];
  readonly functions: string[];
  /** The cell had types before they were removed. */
  readonly typed: boolean;
}

/** Whether code outside of functions awaits. */
export function awaits(node: Node): boolean {
  const any = node as AnyNode;
  if (any.type === "AwaitExpression" || (any.type === "ForOfStatement" && any.await)) return true;
  return !isScope(node) && children(node).some(awaits);
}

/** `import.meta` and `import(…)`, wherever they are: scripts have only the second, and only of some packages. */
export function moduleOnly(node: Node): Node[] {
  const any = node as AnyNode;
  const isOne = any.type === "ImportExpression" || (any.type === "MetaProperty" && any.meta.name === "import");
  return [...(isOne ? [node] : []), ...children(node).flatMap(moduleOnly)];
}

/** All names that a pattern binds. */
export function namesOf(pattern: Pattern): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "ObjectPattern":
      return pattern.properties.flatMap((part) => namesOf(part.type === "Property" ? part.value : part.argument));
    case "ArrayPattern":
      return pattern.elements.flatMap((part) => (part === null ? [] : namesOf(part)));
    case "AssignmentPattern":
      return namesOf(pattern.left);
    case "RestElement":
      return namesOf(pattern.argument);
    default:
      return [];
  }
}

/** `var` declarations in blocks and loops of a statement, which belong to the whole script. */
export function nestedVars(
  node: Node,
  isStatement = true,
): { readonly declaration: VariableDeclaration; readonly isStatement: boolean }[] {
  const any = node as AnyNode;
  if (any.type === "VariableDeclaration") return any.kind === "var" ? [{ declaration: any, isStatement }] : [];
  if (isScope(node)) return [];
  const head = any.type === "ForStatement" ? any.init : undefined;
  const target = any.type === "ForOfStatement" || any.type === "ForInStatement" ? any.left : undefined;
  return children(node).flatMap((child) => nestedVars(child, child !== head && child !== target));
}

/** What has variables and an `await` of its own. */
function isScope({ type }: Node): boolean {
  return type === "ClassBody" || /Function/.test(type);
}

function children(node: Node): Node[] {
  return Object.values(node)
    .flatMap((value: unknown) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    .filter(
      (value): value is Node =>
        typeof value === "object" && value !== null && "type" in value && typeof value.type === "string",
    );
}
