/** A value as a mime bundle: `util.inspect` text, and what its `_toHtml` and such say. */

import { inspect } from "node:util";

/** Method of a value → mime type of what it returns. */
const METHODS = {
  _toHtml: "text/html",
  _toMarkdown: "text/markdown",
  _toSvg: "image/svg+xml",
  _toPng: "image/png",
  _toJpeg: "image/jpeg",
  _toPdf: "application/pdf",
  _toLatex: "text/latex",
  _toJson: "application/json",
} as const;

export type Mimes = Record<string, unknown>;

export function bundleOf(value: unknown): Mimes {
  const bundle: Mimes = { "text/plain": inspect(value) };
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return bundle;
  for (const [method, mime] of Object.entries(METHODS)) {
    const made = call(value, method);
    if (made !== undefined) bundle[mime] = made instanceof Uint8Array ? Buffer.from(made).toString("base64") : made;
  }
  const all = call(value, "_toMime");
  return typeof all === "object" && all !== null ? { ...bundle, ...all } : bundle;
}

function call(value: object, name: string): unknown {
  const method: unknown = Reflect.get(value, name);
  return typeof method === "function" ? Reflect.apply(method, value, []) : undefined;
}

/** The helper `$$`: sends a result in a format of its own, `$$.html("<b>1</b>")`. */
export function helper(send: (bundle: Mimes, main: boolean) => void, main = true): Record<string, unknown> {
  const by = (mime: string) => (value: unknown) => {
    send({ [mime]: value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value }, main);
  };
  return {
    text: by("text/plain"),
    html: by("text/html"),
    markdown: by("text/markdown"),
    svg: by("image/svg+xml"),
    png: by("image/png"),
    jpeg: by("image/jpeg"),
    latex: by("text/latex"),
    json: by("application/json"),
    mime: (bundle: Mimes) => send({ ...bundle }, main),
    sendResult: (value: unknown) => send(bundleOf(value), main),
    display: (value?: unknown) => {
      if (value !== undefined) send(bundleOf(value), false);
      return helper(send, false);
    },
  };
}
