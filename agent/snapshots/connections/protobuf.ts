/** Reads and rewrites messages of CRIU's images, which are Protocol Buffers, without their schema. Pure. */

const VARINT = 0;
const BYTES = 2;
/** Bytes of the fixed wire types, by type. */
const FIXED: Readonly<Record<number, number>> = { 1: 8, 5: 4 };
const CONTINUES = 0x80;
const MAX_VARINT_BYTES = 10;

export interface Field {
  readonly number: number;
  /** The number of a varint modulo 2^32, which holds every number that is read here; 0 for other types. */
  readonly value: number;
  /** Content of a string, of bytes or of a message; empty for other types. */
  readonly content: Buffer;
  /** The field as it stands in its message, with its key. */
  readonly whole: Buffer;
}

/** @throws {Error} if the message is not whole */
export function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length; ) {
    const start = at;
    const key = readVarint(message, at);
    const [number, type] = [key.value >>> 3, key.value & 7];
    at = key.end;
    let value = 0;
    let content = message.subarray(0, 0);
    if (type === VARINT) ({ value, end: at } = readVarint(message, at));
    else if (type === BYTES) {
      const length = readVarint(message, at);
      content = message.subarray(length.end, length.end + length.value);
      at = length.end + length.value;
    } else at += FIXED[type] ?? Number.NaN;
    if (!(at <= message.length)) throw new Error(`field ${number} of a message in an image is cut off`);
    fields.push({ number, value, content, whole: message.subarray(start, at) });
  }
  return fields;
}

export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8 + VARINT), varint(value)]);
}

export function bytesField(number: number, content: Buffer): Buffer {
  return Buffer.concat([varint(number * 8 + BYTES), varint(content.length), content]);
}

function readVarint(message: Buffer, from: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let i = 0; i < MAX_VARINT_BYTES; i++) {
    const byte = message[from + i];
    if (byte === undefined) break;
    // Bits from the 32nd on fall off: they belong to negative numbers and to 64-bit ones.
    if (i < 5) value = (value | ((byte & 0x7f) << (7 * i))) >>> 0;
    if (byte < CONTINUES) return { value, end: from + i + 1 };
  }
  throw new Error("a number of a message in an image is cut off");
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= CONTINUES; rest = Math.floor(rest / CONTINUES)) bytes.push((rest % CONTINUES) + CONTINUES);
  return Buffer.from([...bytes, rest]);
}
