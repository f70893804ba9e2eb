/** `~.` at the beginning of a line leaves the terminal, as with ssh; `~~` is one `~`. Pure, a byte at a time. */

export interface EscapeKey {
  /** The bytes that go to the shell. `leaves`: what comes after them does not. */
  take(data: Uint8Array): { readonly data: Uint8Array; readonly leaves: boolean };
}

const TILDE = 0x7e;
const POINT = 0x2e;
const LINE_ENDS: ReadonlySet<number> = new Set([0x0a, 0x0d]);

export function createEscapeKey(): EscapeKey {
  let isAtBegin = true;
  let isPending = false;
  return {
    take(data) {
      const passed: number[] = [];
      for (const byte of data) {
        if (isPending) {
          isPending = false;
          if (byte === POINT) return { data: Uint8Array.from(passed), leaves: true };
          passed.push(TILDE);
          if (byte === TILDE) {
            isAtBegin = false;
            continue;
          }
        } else if (isAtBegin && byte === TILDE) {
          isPending = true;
          continue;
        }
        passed.push(byte);
        isAtBegin = LINE_ENDS.has(byte);
      }
      return { data: Uint8Array.from(passed), leaves: false };
    },
  };
}
