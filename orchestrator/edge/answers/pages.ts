/** The page a browser shows when a sandbox cannot answer: small, without scripts or external resources. Pure. */

export interface Page {
  readonly title: string;
  /** What happened, in one sentence. */
  readonly what: string;
  /** What to do about it. */
  readonly advice: string;
  /** Undefined when the request names no sandbox. */
  readonly sandboxId?: string;
  readonly link?: { readonly href: string; readonly text: string };
  readonly status: number;
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1c2024;--soft:#60646c;--line:#d9d9e0;--paper:#fcfcfd}
@media (prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#b0b4ba;--line:#43484e;--paper:#111113}}
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,sans-serif}
main{max-width:32rem;padding:2rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem}
p{margin:0 0 .75rem}
dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem;margin:1.5rem 0 0;padding-top:1rem;
border-top:1px solid var(--line);color:var(--soft);font-size:.875rem}
dt{font-weight:600}dd{margin:0;overflow-wrap:anywhere;font-family:ui-monospace,monospace}`;

/** The page's content security policy: its own style and nothing else. */
export const PAGE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors *";

/** Precedes the page for every reader except a `probe` (see `readerOf`). */
export const DOCTYPE = "<!doctype html>";

export function renderPage(page: Page): string {
  const { title, what, advice, sandboxId, link, status } = page;
  const more = link === undefined ? "" : `<p><a href="${escape(link.href)}">${escape(link.text)}</a></p>`;
  const sandbox = sandboxId === undefined ? "" : `<dt>Sandbox</dt><dd>${escape(sandboxId)}</dd>`;
  return `<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex"><title>${escape(title)}</title><style>${STYLE}</style></head><body><main><h1>${escape(title)}</h1><p>${escape(what)}</p><p>${escape(advice)}</p>${more}<dl>${sandbox}<dt>Status</dt><dd>${status}</dd></dl></main></body></html>`;
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}
