/** Reads the JSON body of a request; an empty one is an empty object, whatever its content type. */

import type { IncomingMessage } from "node:http";
import { Refusal } from "./refusal.ts";

/** Code with data in it can be long. */
const MOST_BYTES = 64 * 1024 * 1024;

/** Undefined fields are absent: clients send `null` for what they do not set. @throws {Refusal} 413, 422 */
export async function readBody(request: IncomingMessage): Promise<Body> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > MOST_BYTES) throw new Refusal(413, `the body is longer than ${MOST_BYTES} bytes`);
    pieces.push(piece);
  }
  if (size === 0) return new Body({});
  let value: unknown;
  try {
    value = JSON.parse(Buffer.concat(pieces).toString("utf8"));
  } catch {
    throw malformed("the body is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed("the body is no object");
  return new Body(value as Record<string, unknown>);
}

export class Body {
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(fields: Readonly<Record<string, unknown>>) {
    this.#fields = fields;
  }

  /** @throws {Refusal} 422 when it is no text */
  text(name: string): string | undefined {
    const value = this.#value(name);
    if (value !== undefined && typeof value !== "string") throw malformed(`${name} must be a string`);
    return value;
  }

  /** @throws {Refusal} 422 when it is no object of texts */
  texts(name: string): Record<string, string> {
    const value = this.#value(name) ?? {};
    if (typeof value !== "object" || Array.isArray(value)) throw malformed(`${name} must be an object`);
    for (const [key, text] of Object.entries(value))
      if (typeof text !== "string") throw malformed(`${name}.${key.slice(0, 100)} must be a string`);
    return value as Record<string, string>;
  }

  #value(name: string): unknown {
    const value = Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined;
    return value ?? undefined;
  }
}

export function malformed(reason: string): Refusal {
  return new Refusal(422, reason);
}
