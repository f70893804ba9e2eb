/** Replacements in a text by position, applied together. Pure. */

import type { VariableDeclaration } from "acorn";

export class Edits {
  readonly #text: string;
  readonly #edits: { readonly start: number; readonly end: number; readonly text: string }[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** Line ends in the replaced text stay, so that line numbers do. */
  replace(start: number, end: number, text: string): void {
    const lines = this.#text.slice(start, end).replace(/[^\n]+/g, "");
    this.#edits.push({ start, end, text: text + lines });
  }

  insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text });
  }

  /**
   * Turns a declaration into assignments: `const a = 1, {b} = c` into `void (a = 1), ({b} = c);`. `void` in front, because
   * a statement that begins with a bracket would continue the line before it.
   * @param isStatement false in the head of a loop
   * @param keepsUndefined a variable without a value keeps the one that it has, as `var` does
   */
  assignments(
    { declarations, start, end }: VariableDeclaration,
    { isStatement, keepsUndefined }: { readonly isStatement: boolean; readonly keepsUndefined: boolean },
  ): void {
    const assigned = declarations.some(({ init }) => init !== null && init !== undefined);
    const [first] = declarations;
    if (first === undefined) return;
    // `for (var x of …)`: the target alone; `var x;`: the name alone, which is a statement without effect.
    this.replace(start, first.start, isStatement || assigned ? "void " : "");
    for (const { id, init, start: from, end: to } of declarations) {
      const hasValue = init !== null && init !== undefined;
      if (!hasValue && !isStatement && !assigned) continue;
      if (!hasValue && keepsUndefined) this.replace(from, to, "0");
      else {
        if (!hasValue) this.insert(id.end, " = undefined");
        this.insert(from, "(");
        this.insert(to, ")");
      }
    }
    if (isStatement && !this.#text.slice(start, end).endsWith(";")) this.insert(end, ";");
  }

  applied(): string {
    let at = 0;
    let text = "";
    // Stable: of several at one place the first one made comes first.
    for (const edit of this.#edits.toSorted((a, b) => a.start - b.start)) {
      text += this.#text.slice(at, edit.start) + edit.text;
      at = edit.end;
    }
    return text + this.#text.slice(at);
  }
}
