/** Compares versions of kernels and programs. Pure. */

/** By the first two numbers. A version without them is unknown, and counts as no older. */
export function isOlder(one: string | undefined, other: string | undefined): boolean {
  const [a, b] = [numbers(one), numbers(other)];
  if (a === undefined || b === undefined) return false;
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}

function numbers(version: string | undefined): readonly [number, number] | undefined {
  const [, major, minor] = /(\d+)\.(\d+)/.exec(version ?? "") ?? [];
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)];
}
