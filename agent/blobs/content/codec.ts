/**
 * Between the content of a blob and the bytes in a store: the id of content, compression, and the seal where a key is set.
 *
 * A stored blob: `SVB1`, encoding, sealing, length of the content (4 bytes); where it is sealed, id of the key (8 bytes) and nonce
 * (12 bytes); the payload; where it is sealed, the tag (16 bytes). A blob is small enough to be opened as a whole, so that
 * nothing of it is used before all of it is verified.
 */

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { BlobError } from "./blob-error.ts";
import { expanderOf, type Packing, pack } from "./packing.ts";
import { inSteps, sha256 } from "./steps.ts";

/** Most bytes of a blob's content. Data are cut into smaller ones; only a long manifest comes near. */
export const MAX_CONTENT_BYTES = 64 * 1024 * 1024;

const MAGIC = Buffer.from("SVB1");
const FIXED_BYTES = 10;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const OPEN = 0;
const AES_256_GCM = 1;

export interface BlobCodec {
  /** The id of content: 64 hexadecimal digits. */
  idOf(content: Uint8Array): Promise<string>;
  /**
   * The bytes to store or to send. The same content has the same id however it is packed.
   * @param id that of the content
   * @param packing Default: that of the options
   */
  encode(id: string, content: Uint8Array, packing?: Packing): Promise<Buffer>;
  /** The content, verified. @throws {BlobError} damaged, unreadable */
  decode(id: string, stored: Uint8Array): Promise<Buffer>;
}

interface Key {
  readonly id: Buffer;
  readonly naming: Buffer;
  readonly sealing: Buffer;
}

export interface CodecOptions {
  /** Secrets of the whole platform, the current one first; later ones only open. Empty: blobs are not sealed. */
  readonly keys: readonly string[];
  /** Whose content shares blobs, for example a project: with a key, the same content of two domains has two ids. */
  readonly domain: string;
  /** What every reader of a new blob knows. Default: deflate, which every version reads. */
  readonly packing?: () => Packing;
}

export function createCodec({ keys: secrets, domain, packing: usual = () => "deflate" }: CodecOptions): BlobCodec {
  const keys = secrets.map(toKey);
  const [current] = keys;

  const named = (key: Key, digest: Buffer) =>
    createHmac("sha256", key.naming).update(domain).update("\0").update(digest).digest("hex");

  return {
    async idOf(content) {
      const digest = await sha256(content);
      return current === undefined ? digest.toString("hex") : named(current, digest);
    },

    async encode(id, content, packing = usual()) {
      if (content.length > MAX_CONTENT_BYTES)
        throw new BlobError("changed", `a blob has at most ${MAX_CONTENT_BYTES} bytes, and this one ${content.length}`);
      const { encoding, payload } = await pack(content, packing);
      const head = Buffer.alloc(FIXED_BYTES);
      MAGIC.copy(head);
      head[4] = encoding;
      head[5] = current === undefined ? OPEN : AES_256_GCM;
      head.writeUInt32BE(content.length, 6);
      if (current === undefined) return Buffer.concat([head, payload]);
      const nonce = randomBytes(NONCE_BYTES);
      const opened = Buffer.concat([head, current.id]);
      const cipher = createCipheriv("aes-256-gcm", sealingKey(current, id), nonce).setAAD(bound(opened, id));
      const sealed: Buffer[] = [];
      for await (const step of inSteps(payload)) sealed.push(cipher.update(step));
      return Buffer.concat([opened, nonce, ...sealed, cipher.final(), cipher.getAuthTag()]);
    },

    async decode(id, stored) {
      const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
      const { encoding, length, key, payload } = await open(id, bytes, keys);
      const content = await expanded({ id, encoding, length, payload });
      const digest = await sha256(content);
      // Blobs from before a key was set, or of another node's files, are not sealed. Their name proves their content just as well.
      const candidates = key === undefined ? keys : [key];
      const names = [...candidates.map((each) => named(each, digest)), digest.toString("hex")];
      if (!names.includes(id)) throw damaged(id, "its content is of another name");
      return content;
    },
  };
}

interface Opened {
  readonly encoding: number;
  readonly length: number;
  /** Undefined: it was not sealed. */
  readonly key: Key | undefined;
  readonly payload: Buffer;
}

async function open(id: string, bytes: Buffer, keys: readonly Key[]): Promise<Opened> {
  if (bytes.length < FIXED_BYTES || !bytes.subarray(0, 4).equals(MAGIC))
    throw damaged(id, "it does not begin as a blob");
  const encoding = bytes[4] ?? 0;
  const sealing = bytes[5] ?? 0;
  const length = bytes.readUInt32BE(6);
  if (length > MAX_CONTENT_BYTES) throw damaged(id, `it claims ${length} bytes`);
  if (sealing === OPEN) return { encoding, length, key: undefined, payload: bytes.subarray(FIXED_BYTES) };
  if (sealing !== AES_256_GCM)
    throw new BlobError("unreadable", `blob ${id} has seal ${sealing}, which this version does not know`);
  const begin = FIXED_BYTES + KEY_ID_BYTES + NONCE_BYTES;
  if (bytes.length < begin + TAG_BYTES) throw damaged(id, "it ends too early");
  const opened = bytes.subarray(0, FIXED_BYTES + KEY_ID_BYTES);
  const keyId = opened.subarray(FIXED_BYTES);
  const key = keys.find((each) => each.id.equals(keyId));
  if (key === undefined)
    throw new BlobError(
      "unreadable",
      `blob ${id} is sealed under the key ${keyId.toString("hex")}, which this node does not have`,
    );
  const nonce = bytes.subarray(FIXED_BYTES + KEY_ID_BYTES, begin);
  const decipher = createDecipheriv("aes-256-gcm", sealingKey(key, id), nonce)
    .setAAD(bound(opened, id))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const parts: Buffer[] = [];
  for await (const step of inSteps(bytes.subarray(begin, -TAG_BYTES))) parts.push(decipher.update(step));
  try {
    parts.push(decipher.final());
  } catch (cause) {
    throw damaged(id, "its seal does not hold", cause);
  }
  return { encoding, length, key, payload: Buffer.concat(parts) };
}

async function expanded({ id, encoding, length, payload }: Omit<Opened, "key"> & { id: string }): Promise<Buffer> {
  const expand = expanderOf(encoding);
  if (expand === undefined)
    throw new BlobError(
      "unreadable",
      `blob ${id} has encoding ${encoding}, which this version does not know: a later version has written it, so upgrade this node`,
    );
  let content: Buffer;
  try {
    // Never more than the length in the head, which is bounded: a hostile store cannot fill the memory.
    content = await expand(payload, Math.max(1, length));
  } catch (cause) {
    throw damaged(id, "it cannot be decompressed", cause);
  }
  if (content.length !== length) throw damaged(id, `it has ${content.length} bytes and claims ${length}`);
  return content;
}

/** A key of its own for every blob, so that no number of blobs wears a key out, and a blob opens under its own name only. */
function sealingKey(key: Key, id: string): Buffer {
  return createHmac("sha256", key.sealing).update(id).digest();
}

function bound(head: Buffer, id: string): Buffer {
  return Buffer.concat([head, Buffer.from(id)]);
}

function toKey(secret: string): Key {
  const part = (use: string) => createHmac("sha256", secret).update(`svc blobs: ${use}`).digest();
  return { id: part("id").subarray(0, KEY_ID_BYTES), naming: part("names"), sealing: part("seals") };
}

function damaged(id: string, why: string, cause?: unknown): BlobError {
  return new BlobError("damaged", `blob ${id} is damaged: ${why}`, { cause });
}
