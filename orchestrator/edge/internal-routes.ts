/** envd's internal routes: the edge refuses them to every visitor. Pure. */

import { INTERNAL_SEGMENTS } from "../../shared/agent-api/envd-routes.ts";

const MAX_DECODINGS = 3;

/**
 * Reads the path in each way a server might: decoded (more than once), slashes and dots resolved, in any case. A path
 * that cannot be decoded, or is still encoded after that, is refused too.
 */
export function isInternalRoute(url: string): boolean {
  const end = url.search(/[?#]/);
  let path = end < 0 ? url : url.slice(0, end);
  for (let decodings = 0; ; decodings++) {
    if ([true, false].some((emptyCounts) => INTERNAL_SEGMENTS.has(firstSegment(path, emptyCounts)))) return true;
    if (!path.includes("%")) return false;
    if (decodings === MAX_DECODINGS) return true;
    try {
      const decoded = decodeURIComponent(path);
      if (decoded === path) return false;
      path = decoded;
    } catch {
      return true;
    }
  }
}

/** Servers differ in whether `..` removes an empty segment (`/a//../b`) or the segment before it. */
function firstSegment(path: string, emptyCounts: boolean): string {
  const segments: string[] = [];
  // URL parsers drop tabs and line breaks anywhere, and other control characters at the end.
  const plain = path.replaceAll("\\", "/").replaceAll(/[^ -\uffff]/g, "");
  for (const segment of plain.split("/")) {
    // Parameters of a segment (`/init;v=1`) are not part of its name.
    const name = (segment.split(";", 1)[0] ?? "").trim();
    if (name === "." || (name === "" && !emptyCounts)) continue;
    if (name === "..") segments.pop();
    else segments.push(name);
  }
  return (segments.find((name) => name !== "") ?? "").toLowerCase();
}
