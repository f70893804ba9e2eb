/** Reads and rewrites messages of CRIU's images, which are Protocol Buffers, without their schema. Pure. */

import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

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
  const reader = new BinaryReader(message);
  const fields: Field[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, type] = reader.tag();
    const value = type === WireType.Varint ? reader.uint32() : 0;
    const length = type === WireType.LengthDelimited ? reader.bytes().length : 0;
    const content = message.subarray(reader.pos - length, reader.pos);
    if (type !== WireType.Varint && type !== WireType.LengthDelimited) reader.skip(type, number);
    if (reader.pos > reader.len) throw new Error(`field ${number} of a message in an image is cut off`);
    fields.push({ number, value, content, whole: message.subarray(start, reader.pos) });
  }
  return fields;
}

export function numberField(number: number, value: number): Buffer {
  return Buffer.from(new BinaryWriter().tag(number, WireType.Varint).uint64(BigInt(value)).finish());
}

export function bytesField(number: number, content: Buffer): Buffer {
  return Buffer.from(new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(content).finish());
}
