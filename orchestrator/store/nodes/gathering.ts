/**
 * Gathers writes that many callers ask for at once: the items that come while a write is under way go together in the next one. Nobody waits for a
 * timer, and everyone waits until what they gave is written.
 */

interface Gathering<T, R> {
  /** Of two items with one key only the later one is written. */
  readonly keyOf: (item: T) => string;
  /** Writes all or none; resolves with a result for each key. */
  readonly write: (items: readonly T[]) => Promise<ReadonlyMap<string, R>>;
  /** How many one write may have. */
  readonly most: number;
}

interface Waiting<T, R> {
  item: T;
  readonly askers: { readonly resolve: (result: R) => void; readonly reject: (error: unknown) => void }[];
}

/** Returns the function that asks for the write of one item, and resolves with its result. */
export function gatherWrites<T, R>({ keyOf, write, most }: Gathering<T, R>): (item: T) => Promise<R> {
  const waiting = new Map<string, Waiting<T, R>>();
  const state = { writing: false };

  async function writeSome(some: readonly (readonly [string, Waiting<T, R>])[]): Promise<void> {
    try {
      const results = await write(some.map(([, { item }]) => item));
      for (const [key, { askers }] of some) {
        const result = results.get(key);
        for (const { resolve, reject } of askers) {
          if (result === undefined) reject(new Error(`the write of ${key} has no result`));
          else resolve(result);
        }
      }
    } catch (error) {
      // The database may refuse one of them: each of the others is still written.
      if (some.length > 1) for (const each of some) await writeSome([each]);
      else for (const { reject } of some[0]?.[1].askers ?? []) reject(error);
    }
  }

  async function writeAll(): Promise<void> {
    state.writing = true;
    while (waiting.size > 0) {
      const some = [...waiting].slice(0, most);
      for (const [key] of some) waiting.delete(key);
      await writeSome(some);
    }
    state.writing = false;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      const key = keyOf(item);
      const known = waiting.get(key);
      if (known === undefined) waiting.set(key, { item, askers: [{ resolve, reject }] });
      else {
        known.item = item;
        known.askers.push({ resolve, reject });
      }
      if (!state.writing) void writeAll();
    });
}
