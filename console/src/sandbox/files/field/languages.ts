/** Which language a file is in, by its name; how far its lines are moved to the right; whether its invisible characters can be shown. Pure. */

import type { StreamParser } from "@codemirror/language";
import { css } from "@codemirror/legacy-modes/mode/css";
import { diff } from "@codemirror/legacy-modes/mode/diff";
import { dockerFile } from "@codemirror/legacy-modes/mode/dockerfile";
import { go } from "@codemirror/legacy-modes/mode/go";
import { javascript, json, typescript } from "@codemirror/legacy-modes/mode/javascript";
import { properties } from "@codemirror/legacy-modes/mode/properties";
import { python } from "@codemirror/legacy-modes/mode/python";
import { rust } from "@codemirror/legacy-modes/mode/rust";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { html, xml } from "@codemirror/legacy-modes/mode/xml";
import { yaml } from "@codemirror/legacy-modes/mode/yaml";

type Language = StreamParser<unknown>;

const DOCKERFILE = "dockerfile";

/** By the ends of names. */
const BY_END: readonly (readonly [Language, string])[] = [
  [css, "css"],
  [diff, "diff patch"],
  [dockerFile, DOCKERFILE],
  [go, "go"],
  [html, "html htm"],
  [javascript, "js mjs cjs jsx"],
  [json, "json jsonc ipynb"],
  [properties, "ini conf cfg env properties service"],
  [python, "py pyi"],
  [rust, "rs"],
  [shell, "sh bash zsh bashrc profile bash_profile zshrc"],
  [toml, "toml"],
  [typescript, "ts mts cts tsx"],
  [xml, "xml svg"],
  [yaml, "yaml yml"],
];
const LANGUAGES: ReadonlyMap<string, Language> = new Map(
  BY_END.flatMap(([language, ends]) => ends.split(" ").map((end) => [end, language] as const)),
);

/** Undefined: the field knows none, and shows the text without colours. */
export function languageOf(path: string): Language | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const isForDocker = /^(?:docker|container)file(?:\.|$)/.test(name);
  return LANGUAGES.get(isForDocker ? DOCKERFILE : name.slice(name.lastIndexOf(".") + 1));
}

const USUAL = "  ";

/** What the file has before its first line that is moved to the right: what a new one gets. */
export function indentOf(text: string): string {
  const [, before = USUAL] = /^(\t| {2,8})(?=\S)/m.exec(text) ?? [];
  return before;
}

const LINES = 100;
const MOST_INVISIBLE = 2_000;
/** From which code to which one: characters that the library would draw as elements. */
const INVISIBLE: readonly (readonly [number, number])[] = [
  [0x00, 0x08],
  [0x0e, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x061c, 0x061c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2066, 0x2069],
  [0xfeff, 0xfeff],
  [0xfff9, 0xfffc],
];

/** More of them in a hundred lines, each an element beside the text, would stop the page for minutes. */
export function hasTooManyInvisible(text: string): boolean {
  let lines = 0;
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x0a) {
      if (++lines % LINES === 0) count = 0;
    } else if ((code < 0x20 || code > 0x7e) && INVISIBLE.some(([from, to]) => code >= from && code <= to)) {
      if (++count > MOST_INVISIBLE) return true;
    }
  }
  return false;
}
