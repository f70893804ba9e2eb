/** Parses the elements of sets that `nft -j` prints, in the spelling of nft's own input. Pure; never throws. */

import { addressText, parseRange } from "../../../shared/policy/ranges.ts";

export interface SetElement {
  /** As in a command, without quotes: `svc-1 . 10.213.0.2`, `10.213.0.2 . 198.51.100.0-198.51.100.255`. */
  readonly parts: readonly string[];
  /** Value of its counter; 0 without one. */
  readonly packets: number;
  /** Whole seconds until the element expires; 0 when it stays. */
  readonly leftSeconds: number;
}

type Json = Readonly<Record<string, unknown>>;

/** Elements of each set by its name; empty for text that is not an answer of nft. */
export function readSets(text: string): ReadonlyMap<string, readonly SetElement[]> {
  return new Map(
    objectsIn(text).flatMap(({ set }) => {
      if (!isJson(set) || typeof set["name"] !== "string") return [];
      const elements = Array.isArray(set["elem"]) ? set["elem"] : [];
      return [[set["name"], elements.map(readElement)] as const];
    }),
  );
}

function objectsIn(text: string): readonly Json[] {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return [];
  }
  const all = isJson(document) ? document["nftables"] : undefined;
  return Array.isArray(all) ? all.filter(isJson) : [];
}

/** An element with attributes is wrapped in an object. */
function readElement(element: unknown): SetElement {
  const wrapped = isJson(element) ? element["elem"] : undefined;
  const { val = element, counter, expires } = isJson(wrapped) ? wrapped : {};
  const concat = isJson(val) ? val["concat"] : undefined;
  return {
    parts: (Array.isArray(concat) ? concat : [val]).map(partText),
    packets: isJson(counter) ? wholeNumber(counter["packets"]) : 0,
    leftSeconds: wholeNumber(expires),
  };
}

/** nft prints a range as a prefix where it is one; commands have both ends. */
function partText(part: unknown): string {
  if (typeof part === "string") return part;
  if (typeof part === "number") return String(part);
  const { prefix, range } = isJson(part) ? part : {};
  if (isJson(prefix)) {
    const read = parseRange(`${String(prefix["addr"])}/${String(prefix["len"])}`);
    if (read !== undefined) return `${addressText(read.first)}-${addressText(read.last)}`;
  }
  if (Array.isArray(range)) return range.map(String).join("-");
  return JSON.stringify(part);
}

function wholeNumber(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
