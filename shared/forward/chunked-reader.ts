/** The chunked transfer coding, taken apart as bytes arrive. Pure; nothing but the current line is kept. */

const LF = 0x0a;
const MAX_SIZE_LINE_BYTES = 4 * 1024;

type State = "size" | "data" | "data-end" | "trailers" | "done";

export class ChunkedReader {
  readonly #maxTrailerBytes: number;
  #state: State = "size";
  #left = 0;
  #line: Buffer | undefined;
  #trailerText = "";
  #pieces: Buffer[] = [];

  /** The trailer section without its final empty line, once the body has ended. */
  trailers: string | undefined;
  /** There were bytes after the end. */
  surplus = false;

  constructor(maxTrailerBytes: number) {
    this.#maxTrailerBytes = maxTrailerBytes;
  }

  /** Data found since the last call. */
  take(): readonly Buffer[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  /** Returns what is wrong with the coding, or undefined. */
  push(chunk: Buffer): string | undefined {
    let at = 0;
    while (at < chunk.length) {
      if (this.#state === "done") {
        this.surplus = true;
        return undefined;
      }
      if (this.#state === "data") {
        const end = Math.min(chunk.length, at + this.#left);
        this.#pieces.push(chunk.subarray(at, end));
        this.#left -= end - at;
        at = end;
        if (this.#left === 0) this.#state = "data-end";
        continue;
      }
      const lineEnd = chunk.indexOf(LF, at);
      const piece = chunk.subarray(at, lineEnd < 0 ? chunk.length : lineEnd);
      const bytes = this.#line === undefined ? piece : Buffer.concat([this.#line, piece]);
      if (lineEnd < 0) {
        this.#line = bytes;
        return bytes.length > this.#lineLimit() ? "a line of the chunked coding is too long" : undefined;
      }
      this.#line = undefined;
      at = lineEnd + 1;
      const problem = this.#readLine(bytes.toString("latin1").replace(/\r$/, ""));
      if (problem !== undefined) return problem;
    }
    return undefined;
  }

  #lineLimit(): number {
    return this.#state === "trailers" ? this.#maxTrailerBytes : MAX_SIZE_LINE_BYTES;
  }

  #readLine(line: string): string | undefined {
    if (this.#state === "size") {
      const size = /^([0-9a-fA-F]{1,13})[ \t]*(?:;.*)?$/.exec(line)?.[1];
      if (size === undefined || line.length > MAX_SIZE_LINE_BYTES) return "a chunk size is not one";
      this.#left = Number.parseInt(size, 16);
      this.#state = this.#left === 0 ? "trailers" : "data";
      return undefined;
    }
    if (this.#state === "data-end") {
      if (line !== "") return "a chunk is longer than it says";
      this.#state = "size";
      return undefined;
    }
    if (line === "") {
      this.#state = "done";
      this.trailers = this.#trailerText;
      return undefined;
    }
    this.#trailerText += this.#trailerText === "" ? line : `\r\n${line}`;
    return this.#trailerText.length > this.#maxTrailerBytes ? "the trailers are too large" : undefined;
  }
}
