/**
 * Memory that its program wants empty in a copy (`MADV_WIPEONFORK`): generators of random numbers keep their state there,
 * BoringSSL's and glibc's `getrandom`, and start again when they find it empty. It is empty after each restore of a dump.
 */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bytesField, type Field, fieldsOf, numberField } from "./protobuf.ts";

const MEMORY_IMAGE = /^mm-\d+\.img$/;
const READS_AT_ONCE = 8;
/** Two magic numbers and the length of the one message. */
const HEAD = 8;
const LENGTH = 4;
/** Numbers of the fields; see images/mm.proto and vma.proto of CRIU. */
const AREAS = 14;
const AREA = { flags: 6, advice: 9 } as const;
/** Of `flags`: `MAP_LOCKED`. */
const LOCKED = 0x2000;
/** CRIU gives the kernel each advice whose bit is set, when the memory is restored. */
const WIPE_ON_FORK = 1 << 18;
const DO_NOT_NEED = 1 << 4;
const DO_NOT_NEED_LOCKED = 1 << 24;

/** @throws {Error} if an image is damaged */
export async function wipeOnRestore(images: string): Promise<void> {
  // One for each process.
  const next = (await readdir(images)).filter((name) => MEMORY_IMAGE.test(name)).values();
  const changed: { readonly path: string; readonly image: Buffer }[] = [];
  const worker = async () => {
    for (const name of next) {
      const path = join(images, name);
      const image = withWipedAreas(await readFile(path));
      if (image !== undefined) changed.push({ path, image });
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, worker));
  for (const { path, image } of changed) await writeFile(path, image);
}

/** Pure. Undefined when no area of the process is to be wiped. @throws {Error} if the image is damaged */
export function withWipedAreas(image: Buffer): Buffer | undefined {
  const end = HEAD + LENGTH + (image.length < HEAD + LENGTH ? 0 : image.readUInt32LE(HEAD));
  if (image.length !== end) throw new Error("an image of a process's memory is cut off");
  let found = false;
  const fields = fieldsOf(image.subarray(HEAD + LENGTH)).map((field) => {
    const area = field.number === AREAS ? fieldsOf(field.content) : [];
    const advice = valueOf(area, AREA.advice);
    if ((advice & WIPE_ON_FORK) === 0) return field.whole;
    found = true;
    const forget = (valueOf(area, AREA.flags) & LOCKED) === 0 ? DO_NOT_NEED : DO_NOT_NEED_LOCKED;
    const kept = area.filter(({ number }) => number !== AREA.advice).map(({ whole }) => whole);
    return bytesField(AREAS, Buffer.concat([...kept, numberField(AREA.advice, advice | forget)]));
  });
  if (!found) return undefined;
  const message = Buffer.concat(fields);
  const length = Buffer.alloc(LENGTH);
  length.writeUInt32LE(message.length);
  return Buffer.concat([image.subarray(0, HEAD), length, message]);
}

function valueOf(fields: readonly Field[], wanted: number): number {
  return fields.find(({ number }) => number === wanted)?.value ?? 0;
}
