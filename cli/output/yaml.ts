/** YAML of a value of the API. A text with unsafe characters is quoted, with their escapes. */

import { Document, isScalar, visit } from "yaml";
import { escapeQuoted, isUnsafe } from "./escape.ts";

export function yaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_key, node) {
      if (isScalar(node) && typeof node.value === "string" && isUnsafe(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return escapeQuoted(document.toString({ lineWidth: 0 }));
}
