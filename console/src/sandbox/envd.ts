/** Calls to a sandbox's envd, through the console: one answer, or a stream of messages (Connect, in JSON). */

import { API, jsonOf, send } from "../base/client.ts";
import { Failed } from "../base/failed.ts";
import { joined } from "../base/joined.ts";
import { notePerformed } from "../base/performed.ts";
import { operatorProject } from "../base/session.ts";
import { beforeSilence } from "../base/silence.ts";

const VERSION = { "connect-protocol-version": "1" };
/** Envd's own messages are far smaller; a program that has taken its place could make the page hold any number of bytes. */
const MOST_FRAME_BYTES = 16 * 1024 * 1024;
/** Bit of a frame that holds the end of the stream. */
const END = 2;

const base = (id: string) => `${API}/sandboxes/${encodeURIComponent(id)}/envd`;

/** @throws {Failed} */
export async function call<T>(id: string, method: string, body: object, signal?: AbortSignal): Promise<T> {
  const answer = await send("POST", `${base(id)}/${method}`, { body, headers: VERSION, signal });
  return jsonOf<T>(answer);
}

/** A call that changes something; it is listed among what was done. @throws {Failed} */
export async function callAct(id: string, method: string, body: object): Promise<void> {
  await call(id, method, body);
  notePerformed({ method: "POST", path: `/sandboxes/${encodeURIComponent(id)}/envd/${method}`, body });
}

/** Messages of a stream, as they come: the next one is read when the one before has been used. @throws {Failed} */
export async function* follow<T>(
  id: string,
  method: string,
  body: object,
  signal: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const answer = await send("POST", `${base(id)}/${method}`, {
    body: framed(body),
    headers: { ...VERSION, "content-type": "application/connect+json" },
    signal,
  });
  if (answer.body === null) return;
  const reader = answer.body.getReader();
  try {
    let held = new Uint8Array();
    for (;;) {
      const { done, value } = await beforeSilence(reader.read());
      if (done) return;
      held = joined([held, value]);
      for (let frame = first(held); frame !== undefined; frame = first(held)) {
        held = held.subarray(frame.length);
        const message = JSON.parse(new TextDecoder().decode(frame.body)) as Ended;
        if (frame.isEnd) {
          if (message.error === undefined) return;
          throw new Failed(message.error.message ?? message.error.code, { status: 200, code: message.error.code });
        }
        yield message as Awaited<T>;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

interface Ended {
  readonly error?: { readonly code: string; readonly message?: string };
}

function framed(message: object): Uint8Array {
  const body = new TextEncoder().encode(JSON.stringify(message));
  const frame = new Uint8Array(5 + body.length);
  new DataView(frame.buffer).setUint32(1, body.length);
  frame.set(body, 5);
  return frame;
}

function first(held: Uint8Array) {
  if (held.length < 5) return undefined;
  const length = 5 + new DataView(held.buffer, held.byteOffset).getUint32(1);
  if (length > MOST_FRAME_BYTES) throw new Error("a message of the sandbox is too large");
  if (held.length < length) return undefined;
  return { length, isEnd: ((held[0] ?? 0) & END) !== 0, body: held.subarray(5, length) };
}

/** The address of a file, for downloads: the server answers it as an attachment, whatever it is. */
export function fileUrl(id: string, path: string): string {
  const project = operatorProject.value;
  return `${base(id)}/files?${new URLSearchParams({ path, ...(project === undefined ? {} : { project }) }).toString()}`;
}

/**
 * @param mostBytes the page stops reading after so many bytes, even if the directory tells a smaller size
 * @throws {Failed} @throws {Error} it has more
 */
export async function readFile(id: string, path: string, mostBytes: number) {
  const answer = await send("GET", fileUrl(id, path));
  const bytes = await bytesOf(answer, mostBytes);
  if (bytes === undefined) throw new Error(`${path} has more than ${mostBytes} bytes`);
  return { bytes, etag: answer.headers.get("etag") ?? undefined };
}

/** Undefined: there are more. */
async function bytesOf({ body }: Response, mostBytes: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > mostBytes) return undefined;
      parts.push(value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  return joined(parts);
}

/**
 * @param ifMatch the file is written only while it has this entity tag; absent: whatever it is
 * @returns its next entity tag; undefined: the envd of the sandbox is of an earlier version, and did not look at the tag
 * @throws {Failed} 412: it is another version of the file, or gone
 */
export async function writeFile(
  id: string,
  path: string,
  content: Blob | Uint8Array<ArrayBuffer>,
  ifMatch?: string,
): Promise<string | undefined> {
  const headers = {
    "content-type": "application/octet-stream",
    ...(ifMatch === undefined ? {} : { "if-match": ifMatch }),
  };
  const answer = await send("POST", fileUrl(id, path), { body: content, headers });
  notePerformed({ method: "POST", path: `/sandboxes/${encodeURIComponent(id)}/envd/files`, body: { path } });
  return answer.headers.get("etag") ?? undefined;
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
