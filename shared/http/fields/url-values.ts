/** Converts query values to the types of their schema. Text that is not wholly a number stays text, and is refused later. */

import type { TSchema } from "typebox";

/** The text that joins the values of a parameter where it is repeated; a comma without the keyword. */
export const JOINED_BY = "x-joined-by";

interface Property {
  readonly type?: unknown;
  readonly format?: unknown;
  readonly [JOINED_BY]?: string;
}

/** Python writes `True`, PHP writes 1. */
const TRUE = /^(?:true|1)$/i;
const FALSE = /^(?:false|0)$/i;

/** Repeated parameters are joined, so both spellings of a list mean the same. */
export function fromUrl(schema: TSchema | undefined, query: unknown): unknown {
  if (schema === undefined || typeof query !== "object" || query === null) return query;
  const properties = "properties" in schema ? (schema.properties as Readonly<Record<string, Property>>) : {};
  const entries = Object.entries(query).map(([name, value]: [string, unknown]) => {
    const text = Array.isArray(value) ? value.join(properties[name]?.[JOINED_BY] ?? ",") : value;
    return [name, typeof text === "string" ? typed(properties[name], text) : text] as const;
  });
  return Object.fromEntries(entries);
}

function typed(property: Property | undefined, text: string): unknown {
  const { type, format }: Property = property ?? {};
  if ((type === "integer" || type === "number") && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "number" && /^-?\d{1,15}\.\d{1,15}$/.test(text)) return Number(text);
  // In a query a `+` means a space, and times such as those of `date -Iseconds` are often written as they are.
  if (format === "date-time") return text.replace(/ (?=\d\d:\d\d$)/, "+");
  if (type === "boolean" && TRUE.test(text)) return true;
  if (type === "boolean" && FALSE.test(text)) return false;
  return text;
}
