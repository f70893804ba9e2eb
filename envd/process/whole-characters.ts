/**
 * Cuts a stream of bytes into frames at the ends of its UTF-8 characters, because published clients decode each frame on its
 * own. Waits only for a character that has begun, and not for long: other bytes may look like the beginning of one.
 */

/** How long the beginning of a character waits for its rest. */
const WAIT_MS = 50;
const NONE = Buffer.alloc(0);

export class WholeCharacters {
  readonly #largest: number;
  readonly #deliver: (frame: Buffer) => void;
  #begun: Buffer = NONE;
  #timer: NodeJS.Timeout | undefined;
  #paused = false;

  /** @param largest bytes of a frame, at least 4 */
  constructor(largest: number, deliver: (frame: Buffer) => void) {
    this.#largest = largest;
    this.#deliver = deliver;
  }

  push(bytes: Buffer): void {
    let rest = this.#begun.length === 0 ? bytes : Buffer.concat([this.#begun, bytes]);
    this.#forget();
    while (rest.length > this.#largest) {
      const size = this.#largest - begunBytes(rest.subarray(0, this.#largest));
      this.#deliver(rest.subarray(0, size));
      rest = rest.subarray(size);
    }
    const whole = rest.length - begunBytes(rest);
    // Before the frame, whose receiver may pause this. A copy, because a reference would keep the whole chunk in memory.
    this.#begun = Buffer.from(rest.subarray(whole));
    if (whole > 0) this.#deliver(rest.subarray(0, whole));
    this.#wait();
  }

  /** Delivers what waits: nothing follows it. */
  flush(): void {
    const begun = this.#begun;
    this.#forget();
    if (begun.length > 0) this.#deliver(begun);
  }

  /** The rest cannot arrive while nobody reads: it is waited for after `resume`. */
  pause(): void {
    this.#paused = true;
    clearTimeout(this.#timer);
  }

  resume(): void {
    this.#paused = false;
    this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#begun.length > 0 && !this.#paused) this.#timer = setTimeout(() => this.flush(), WAIT_MS);
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#begun = NONE;
  }
}

/** How many of the last bytes are the beginning of a character: 0 to 3. */
function begunBytes(bytes: Buffer): number {
  for (let count = 1; count <= Math.min(3, bytes.length); count += 1) {
    const byte = bytes[bytes.length - count] ?? 0;
    const isContinuation = byte >= 0x80 && byte < 0xc0;
    if (!isContinuation) return characterBytes(byte) > count ? count : 0;
  }
  return 0;
}

/** By the first byte; one that begins no character stands alone. */
function characterBytes(first: number): number {
  if (first < 0xc2 || first > 0xf4) return 1;
  if (first >= 0xf0) return 4;
  return first >= 0xe0 ? 3 : 2;
}
