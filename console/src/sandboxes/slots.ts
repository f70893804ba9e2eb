/**
 * Which element of the page shows which row. A row keeps its element while it is in view, so focus stays with its sandbox; a
 * row that comes into view takes the element of one that has left, so scrolling makes and removes no element. Pure.
 */

/** The number of its element for each row in view, by the row's id. */
export type Slots = ReadonlyMap<string, number>;

/** @param ids the rows in view, each once; their elements have the numbers below the count of rows */
export function reassigned(before: Slots, ids: readonly string[]): Slots {
  const kept = ids.map((id) => before.get(id)).filter((slot) => slot !== undefined && slot < ids.length);
  const taken = new Set(kept);
  const free = [...ids.keys()].filter((slot) => !taken.has(slot));
  let next = 0;
  const slotOf = (id: string) => {
    const slot = before.get(id);
    return slot !== undefined && slot < ids.length ? slot : (free[next++] ?? 0);
  };
  return new Map(ids.map((id) => [id, slotOf(id)]));
}

/** The rows in view and `beyond` more on each side; as many at every place of a long list. */
export function inView(
  { scrollTop, height, rowHeight }: { readonly scrollTop: number; readonly height: number; readonly rowHeight: number },
  beyond: number,
): { readonly first: number; readonly count: number } {
  return {
    first: Math.max(0, Math.floor(scrollTop / rowHeight) - beyond),
    count: Math.ceil(height / rowHeight) + 1 + 2 * beyond,
  };
}
