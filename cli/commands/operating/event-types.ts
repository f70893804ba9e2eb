/** Types of events, which people write without the beginning that most have. Pure. */

const COMMON = "sandbox.lifecycle.";

export function wholeType(word: string): string {
  return word.includes(".") ? word : `${COMMON}${word}`;
}

export function shortType(type: string): string {
  return type.startsWith(COMMON) ? type.slice(COMMON.length) : type;
}
