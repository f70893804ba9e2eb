/** IPv4 ranges as numbers: parsed, compared, merged. Pure. */

/** Both ends inclusive, as unsigned 32 bit numbers. */
export interface Range {
  readonly first: number;
  readonly last: number;
}

export const LAST_ADDRESS = 2 ** 32 - 1;

/** Never reachable, under any policy. */
export const ALWAYS_DENIED = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/4",
  "240.0.0.0/4",
] as const;

/** Undefined for anything but four decimal numbers without leading zeros: no octal, hexadecimal or short form. */
export function addressNumber(text: string): number | undefined {
  const match = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/.exec(text);
  if (match === null) return undefined;
  const parts = match.slice(1).map(Number);
  if (parts.some((part) => part > 255)) return undefined;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

export function addressText(number: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join(".");
}

/**
 * The numbers of an IPv4 range: `a.b.c.d` or `a.b.c.d/bits`; bits behind the prefix are ignored. `readCidr` checks text from
 * outside; decisions about flows use these numbers, which are thirty times faster than objects of the library.
 */
export function parseRange(text: string): Range | undefined {
  const [address = "", bits = "32", ...rest] = text.split("/");
  const number = addressNumber(address);
  if (number === undefined || rest.length > 0 || !/^(0|[1-9]\d?)$/.test(bits) || Number(bits) > 32) return undefined;
  const size = 2 ** (32 - Number(bits));
  const first = number - (number % size);
  return { first, last: first + size - 1 };
}

export function contains({ first, last }: Range, number: number): boolean {
  return number >= first && number <= last;
}

/** The same addresses in as few ranges as possible, in order, none touching another. */
export function mergeRanges(ranges: readonly Range[]): readonly Range[] {
  const merged: { first: number; last: number }[] = [];
  for (const { first, last } of ranges.toSorted((a, b) => a.first - b.first)) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else merged.push({ first, last });
  }
  return merged;
}

/** The ranges between those of `merged`, which `mergeRanges` made. */
export function otherRanges(merged: readonly Range[]): readonly Range[] {
  const others = merged.map(({ first }, i) => ({
    first: i === 0 ? 0 : (merged[i - 1]?.last ?? 0) + 1,
    last: first - 1,
  }));
  const rest = { first: (merged.at(-1)?.last ?? -1) + 1, last: LAST_ADDRESS };
  return [...others, rest].filter(({ first, last }) => first <= last);
}

const denied = ALWAYS_DENIED.map((text) => ({ text, range: parseRange(text) as Range }));

/** The range of `ALWAYS_DENIED` that the address is in. */
export function alwaysDenied(number: number): string | undefined {
  return denied.find(({ range }) => contains(range, number))?.text;
}
