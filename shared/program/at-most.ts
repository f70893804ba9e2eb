/** How many entries a cache of `lru-cache` may have. Pure. */

/**
 * Options for a cache of at most so many entries that takes memory for those that it has. With `max` it takes the memory of all
 * of them when it is made, which costs a start milliseconds.
 */
export function atMost(entries: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
