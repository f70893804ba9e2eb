/** Pure: multipart/form-data read part by part as it arrives; holds no more than a chunk and a part's headers. */

import { AppError } from "../../shared/http/errors.ts";
import type { Pieces } from "../bodies/arriving.ts";
import { writtenBy } from "../system/file-names.ts";

export interface Part {
  readonly name: string | undefined;
  /** With its directories, as the client wrote it. */
  readonly filename: string | undefined;
  /** Has to be read, or left, before the next part. */
  readonly body: AsyncIterable<Pieces>;
}

const LARGEST_HEADER_BYTES = 16 * 1024;
const HEADER_END = Buffer.from("\r\n\r\n");

/** The boundary of a Content-Type header. @throws {AppError} bad_request without a boundary that RFC 2046 allows */
export function boundaryOf(contentType: string): string {
  const match = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType);
  const boundary = match?.[1] ?? match?.[2];
  if (boundary === undefined) throw new AppError("bad_request", "multipart body without a boundary");
  return boundary;
}

/**
 * Releases the source however parsing ends, so that the rest of the body is discarded.
 * @throws {AppError} bad_request where the body is not what its content type says
 */
export async function* readParts(source: AsyncIterable<Pieces>, boundary: string): AsyncGenerator<Part> {
  const arriving = source[Symbol.asyncIterator]();
  try {
    yield* partsOf(arriving, boundary);
  } finally {
    await arriving.return?.();
  }
}

async function* partsOf(source: AsyncIterator<Pieces>, boundary: string): AsyncGenerator<Part> {
  // The first delimiter has no line break before it; giving it one makes all delimiters the same.
  const reader = new Reader(source, Buffer.from("\r\n"));
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  for await (const _ of reader.until(delimiter)) continue;
  for (;;) {
    const rest = await reader.line();
    if (rest.startsWith("--")) return;
    if (rest.trim() !== "") throw malformed("a boundary is followed by something else");
    const headers = await reader.headers();
    const body = reader.until(delimiter);
    yield { ...parseDisposition(headers), body };
    for await (const _ of body) continue;
  }
}

class Reader {
  readonly #source: AsyncIterator<Pieces>;
  /** Pieces that have arrived and were not read yet. */
  readonly #pieces: Buffer[] = [];
  #held: Buffer;

  constructor(source: AsyncIterator<Pieces>, before: Buffer) {
    this.#source = source;
    this.#held = before;
  }

  /** The bytes before the boundary; takes the boundary itself, too. */
  async *until(boundary: Buffer): AsyncGenerator<Pieces> {
    let ready: Buffer[] = [];
    for (;;) {
      const at = this.#held.indexOf(boundary);
      // The end of what is held may be the beginning of the boundary.
      const safe = at >= 0 ? at : this.#held.length - partialBoundary(this.#held, boundary);
      if (safe > 0) ready.push(this.#held.subarray(0, safe));
      this.#held = this.#held.subarray(at >= 0 ? at + boundary.length : safe);
      if (ready.length > 0 && (at >= 0 || this.#pieces.length === 0)) {
        yield ready;
        ready = [];
      }
      if (at >= 0) return;
      if (!(await this.#more())) throw malformed("it ends before its last boundary");
    }
  }

  /** The text before the line break; takes the line break itself, too. */
  async line(): Promise<string> {
    // The last boundary may be the last thing there is, without a line break.
    while (this.#held.length < 2) if (!(await this.#more())) break;
    if (this.#held.toString("latin1", 0, 2) === "--") return "--";
    return (await this.#upTo(Buffer.from("\r\n"))).toString("utf8");
  }

  async headers(): Promise<string> {
    // A part without any header is one line break after the boundary's own.
    while (this.#held.length < 2) if (!(await this.#more())) break;
    if (this.#held.subarray(0, 2).equals(Buffer.from("\r\n"))) {
      this.#held = this.#held.subarray(2);
      return "";
    }
    return writtenBy(await this.#upTo(HEADER_END));
  }

  async #upTo(end: Buffer): Promise<Buffer> {
    for (;;) {
      const at = this.#held.indexOf(end);
      if (at >= 0) {
        const found = this.#held.subarray(0, at);
        this.#held = this.#held.subarray(at + end.length);
        return found;
      }
      if (this.#held.length > LARGEST_HEADER_BYTES) throw malformed("the headers of a part are too long");
      if (!(await this.#more())) throw malformed("it ends within the headers of a part");
    }
  }

  /** Adds one more piece to the held bytes. False: the body has ended. */
  async #more(): Promise<boolean> {
    let piece = this.#pieces.shift();
    while (piece === undefined) {
      const { done, value } = await this.#source.next();
      if (done === true) return false;
      this.#pieces.push(...value);
      piece = this.#pieces.shift();
    }
    this.#held = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    return true;
  }
}

/** How many of the last bytes could be the start of the boundary. */
function partialBoundary(bytes: Buffer, boundary: Buffer): number {
  for (let length = Math.min(bytes.length, boundary.length - 1); length > 0; length -= 1)
    if (bytes.subarray(bytes.length - length).equals(boundary.subarray(0, length))) return length;
  return 0;
}

function parseDisposition(headers: string): { name: string | undefined; filename: string | undefined } {
  const line = headers.split("\r\n").find((header) => /^content-disposition\s*:/i.test(header)) ?? "";
  return { name: parameter(line, "name"), filename: extended(line) ?? parameter(line, "filename") };
}

// The extended name comes first, as in RFC 6266: what stands beside it is for readers that do not know it.
// Clients write UTF-8 as it is; only quotes and backslashes are escaped.
function parameter(line: string, key: string): string | undefined {
  const match = new RegExp(`;\\s*${key}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, "i").exec(line);
  return match?.[1]?.replaceAll(/\\(["\\])/g, "$1") ?? match?.[2];
}

function extended(line: string): string | undefined {
  const encoded = /;\s*filename\*\s*=\s*utf-8'[^']*'([^\s;]+)/i.exec(line)?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw malformed("a file name is not valid");
  }
}

function malformed(why: string): AppError {
  return new AppError("bad_request", `malformed multipart body: ${why}`);
}
