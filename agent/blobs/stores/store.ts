/** What a store of blobs can do. The few operations that every shared directory and every S3-compatible service has. */

export interface StoredBlob {
  readonly key: string;
  readonly bytes: number;
}

export interface Range {
  readonly from: number;
  readonly length: number;
}

interface Page {
  readonly found: readonly StoredBlob[];
  /** The `after` of the next page; undefined: this is the last one. */
  readonly next: string | undefined;
}

/** A key is lower-case letters, digits, dots and slashes. Every operation throws a BlobError with the fault. */
export interface BlobStore {
  /** For messages: `the store /mnt/shared`. */
  readonly name: string;
  /**
   * Writes the object unless there is one of this name. Resolves when it is durable. A reader sees all of it or none. Two writers
   * of one name at once both succeed; that is harmless, because a name stands for one content.
   * @param replace writes it in any case
   */
  put(key: string, bytes: Uint8Array, signal: AbortSignal, replace?: boolean): Promise<"stored" | "present">;
  /** @param range all of it if absent; a range may go past the end */
  get(key: string, signal: AbortSignal, range?: Range): Promise<Buffer>;
  /** Bytes of the object; undefined: there is none. */
  size(key: string, signal: AbortSignal): Promise<number | undefined>;
  /** An object that is not there counts as success. */
  delete(key: string, signal: AbortSignal): Promise<void>;
  /** Objects below a prefix by order of their keys, from the first one behind `after`. */
  list(prefix: string, after: string, signal: AbortSignal): Promise<Page>;
  /** Removes what writers that were killed have left since before this moment. Resolves to how much that was. */
  tidy(beforeUnixMs: number, signal: AbortSignal): Promise<number>;
}

/** All objects below the prefix. */
export async function* listAll(store: BlobStore, prefix: string, signal: AbortSignal): AsyncGenerator<StoredBlob> {
  let after: string | undefined = "";
  while (after !== undefined) {
    const page: Page = await store.list(prefix, after, signal);
    yield* page.found;
    after = page.next;
  }
}

const KEY = /^[a-z0-9]+(?:[./][a-z0-9]+)*$/;

/** A key never leads out of its store. */
export function checkKey(key: string): void {
  if (!KEY.test(key)) throw new TypeError(`${JSON.stringify(key)} is no key of a blob store`);
}
