/** What a command shows: data on standard output in the form that `-o` names, everything else on standard error. */

import { once } from "node:events";
import type { Writable } from "node:stream";
import type { Options } from "../options.ts";
import { escapeLine, escapeQuoted, escapeText } from "./escape.ts";
import { type Column, cells, lines } from "./table.ts";

export interface Terminals {
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** How things of one kind are shown. */
export interface View<T> {
  /** `sandbox/ID` for `-o name`. */
  readonly name: (item: T) => string;
  readonly columns: readonly Column<T>[];
}

export interface Output {
  /** Data as it is, for programs. */
  bytes(data: Uint8Array): Promise<void>;
  /** Lines of data; each is escaped. */
  line(...texts: readonly string[]): Promise<void>;
  /** To standard error, escaped. */
  note(text: string): void;
  list<T>(view: View<T>, items: readonly T[], options: Options): Promise<void>;
  /** One thing: a line for each column, or what `-o` names. */
  one<T>(view: View<T>, item: T, options: Options): Promise<void>;
  /** Any value in the form of `-o json` or `-o yaml`; false where another form is asked for. */
  structured(value: unknown, options: Options): Promise<boolean>;
  /** Whether standard output, or standard error, is a terminal. */
  readonly isTerminal: { readonly out: boolean; readonly err: boolean };
  readonly colour: boolean;
}

const COLOURS: Readonly<Record<string, number>> = {
  running: 32,
  ready: 32,
  active: 32,
  delivered: 32,
  allow: 32,
  done: 32,
  whole: 32,
  paused: 36,
  stored: 36,
  starting: 33,
  pausing: 33,
  building: 33,
  waiting: 33,
  draining: 33,
  connecting: 33,
  pending: 33,
  disabled: 33,
  unhealthy: 31,
  error: 31,
  failed: 31,
  damaged: 31,
  lost: 31,
  deny: 31,
  refused: 31,
  banned: 31,
  ended: 90,
  standby: 90,
};

export function createOutput({ stdout, stderr }: Terminals, env: Readonly<Record<string, string | undefined>>): Output {
  const colour = stdout.isTTY === true && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb";

  async function bytes(data: Uint8Array | string): Promise<void> {
    if (!stdout.write(data)) await once(stdout, "drain");
  }
  const text = (all: readonly string[]) => (all.length === 0 ? Promise.resolve() : bytes(`${all.join("\n")}\n`));
  const painted = (word: string) => {
    const code = COLOURS[word.split(/[\s,(]/, 1)[0] ?? ""];
    return colour && code !== undefined ? `\u001b[${code}m${word}\u001b[0m` : word;
  };

  async function structured(value: unknown, { output }: Options): Promise<boolean> {
    if (output === "json") await bytes(`${escapeQuoted(JSON.stringify(value, null, 2))}\n`);
    else if (output === "yaml") await bytes((await import("./yaml.ts")).yaml(value));
    else return false;
    return true;
  }

  return {
    bytes,
    structured,
    colour,
    isTerminal: { out: stdout.isTTY === true, err: stderr.isTTY === true },
    line: (...texts) => text(texts.map(escapeLine)),
    note: (message) => void stderr.write(`${escapeText(message)}\n`),
    async list(view, items, options) {
      if (await structured(items, options)) return;
      if (options.output === "name") return text(items.map((item) => escapeLine(view.name(item))));
      const columns = view.columns.filter(({ wide }) => wide !== true || options.output === "wide");
      const head = options.headers === false ? [] : [columns.map(({ title }) => title)];
      if (items.length === 0) {
        if (options.headers !== false) stderr.write("Nothing found.\n");
        return;
      }
      const rows = [...head, ...items.map((item) => cells(columns, item))];
      await text(
        lines(rows, (word, column, row) =>
          row >= head.length && columns[column]?.state === true ? painted(word) : word,
        ),
      );
    },
    async one(view, item, options) {
      if (await structured(item, options)) return;
      if (options.output === "name") return text([escapeLine(view.name(item))]);
      const shown = view.columns.map(({ title }) => `${title[0] ?? ""}${title.slice(1).toLowerCase()}:`);
      const values = cells(view.columns, item);
      await text(
        lines(
          shown.map((title, index) => [title, values[index] ?? ""]),
          (word, column, row) => (column === 1 && view.columns[row]?.state === true ? painted(word) : word),
        ),
      );
    },
  };
}
