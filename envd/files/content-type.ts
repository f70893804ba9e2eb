/** Pure: the media type and the disposition of a download, by its file name. */

import { posix } from "node:path";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".gz": "application/gzip",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".tar": "application/x-tar",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".wav": "audio/wav",
  ".webp": "image/webp",
  ".xml": "text/xml; charset=utf-8",
  ".zip": "application/zip",
};

export function contentType(path: string): string {
  return TYPES[posix.extname(path).toLowerCase()] ?? "application/octet-stream";
}

/** `inline; filename=…`, with the name in UTF-8 beside an ASCII one where it needs it (RFC 6266). */
export function contentDisposition(path: string): string {
  const name = posix.basename(path);
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  if (plain === name) return `inline; filename="${name}"`;
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `inline; filename="${plain}"; filename*=UTF-8''${encoded}`;
}
