/**
 * Replaces two built-ins that cost an idle sandbox much. Node's own `Headers` loads its whole HTTP client with a
 * WebAssembly parser (4 MB, 20 ms); base64 of byte arrays is missing in Node 24, and the protobuf library's own
 * version handles one character at a time. Only main.ts imports this file, before all others: libraries look once.
 */

class SmallHeaders {
  readonly #values = new Map<string, string>();

  constructor(init?: Iterable<readonly [string, string]> | Readonly<Record<string, string>>) {
    if (init === undefined) return;
    const pairs = Symbol.iterator in init ? init : Object.entries(init);
    for (const [name, value] of pairs) this.append(name, value);
  }

  append(name: string, value: string): void {
    const key = name.toLowerCase();
    const before = this.#values.get(key);
    this.#values.set(key, before === undefined ? value : `${before}, ${value}`);
  }

  set(name: string, value: string): void {
    this.#values.set(name.toLowerCase(), value);
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null;
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase());
  }

  delete(name: string): void {
    this.#values.delete(name.toLowerCase());
  }

  forEach(visit: (value: string, name: string) => void): void {
    for (const [name, value] of this.#values) visit(value, name);
  }

  keys(): IterableIterator<string> {
    return this.#values.keys();
  }

  values(): IterableIterator<string> {
    return this.#values.values();
  }

  entries(): IterableIterator<[string, string]> {
    return this.#values.entries();
  }

  getSetCookie(): string[] {
    return [];
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.#values.entries();
  }
}

interface Base64Options {
  readonly alphabet?: "base64" | "base64url";
  readonly omitPadding?: boolean;
}

function toBase64(this: Uint8Array, { alphabet = "base64", omitPadding = false }: Base64Options = {}): string {
  const text = Buffer.from(this.buffer, this.byteOffset, this.byteLength).toString(alphabet);
  return omitPadding && alphabet === "base64" ? text.replace(/=+$/, "") : text;
}

// Not by `defineProperty`, which asks for the present value first and so loads Node's own.
(globalThis as { Headers: unknown }).Headers = SmallHeaders;
if (!("toBase64" in Uint8Array.prototype))
  // oxlint-disable-next-line no-extend-native -- the standard method of later versions of Node, by its standard name
  Object.defineProperty(Uint8Array.prototype, "toBase64", {
    value: toBase64,
    writable: true,
    configurable: true,
    enumerable: false,
  });
