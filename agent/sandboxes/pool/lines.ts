/** Lines of waiting starts, one for each key, in the order of arrival. A line ends with its last start. Pure. */

export interface Lines<T> {
  join(key: string, one: T): void;
  leave(key: string, one: T): void;
  /** Takes the first one that fits out of its line. */
  take(key: string, fits: (one: T) => boolean): T | undefined;
  /** Keys for which somebody waits. */
  readonly size: number;
}

export function createLines<T>(): Lines<T> {
  const lines = new Map<string, readonly T[]>();
  const leave = (key: string, one: T) => {
    const others = (lines.get(key) ?? []).filter((each) => each !== one);
    if (others.length === 0) lines.delete(key);
    else lines.set(key, others);
  };
  return {
    join: (key, one) => void lines.set(key, [...(lines.get(key) ?? []), one]),
    leave,
    take(key, fits) {
      const first = lines.get(key)?.find(fits);
      if (first !== undefined) leave(key, first);
      return first;
    },
    get size() {
      return lines.size;
    },
  };
}
