/**
 * Compression of a blob's content. Every version of this program reads deflate; versions before zstd was here say of such a blob that they do
 * not know its encoding, so zstd is written only where every reader is known to have it.
 */

import { promisify } from "node:util";
import { constants, deflateRaw, inflateRaw, zstdCompress, zstdDecompress } from "node:zlib";

/** How the content of a new blob is packed. `fast`: as it is, for a reader on this machine. */
export type Packing = "fast" | "deflate" | "zstd";

/** The number in the head of a blob. */
const RAW = 0;
const DEFLATE = 1;
const ZSTD = 2;

/** Compression that gains less than a sixteenth costs more at every download than it saves. */
const WORTH = 15 / 16;
/** A prefix that tells whether compression of the rest is worth its time. */
const SAMPLE_BYTES = 64 * 1024;
/**
 * A frame of zstd names the memory that its reader needs. What is written here needs at most 2 MiB, and at most 4 MiB is content of a file;
 * a hostile frame could ask for gigabytes.
 */
const MOST_WINDOW_LOG = 23;
/** Each piece of output is one turn of the thread pool. */
const PIECE_BYTES = 256 * 1024;

type Compress = (bytes: Uint8Array) => Promise<Buffer>;
/** Fails when the output has more than `most` bytes. */
type Expand = (bytes: Uint8Array, most: number) => Promise<Buffer>;

const deflating = promisify(deflateRaw) as (bytes: Uint8Array, options: object) => Promise<Buffer>;
const inflating = promisify(inflateRaw) as typeof deflating;
const zstdCompressing = promisify(zstdCompress) as typeof deflating;
const zstdExpanding = promisify(zstdDecompress) as typeof deflating;

// The fastest levels: a dump of memory is as small with them as with the slower ones, within a tenth (README.md, Decisions).
const PACKERS: Readonly<Record<Exclude<Packing, "fast">, { readonly encoding: number; readonly compress: Compress }>> =
  {
    deflate: { encoding: DEFLATE, compress: (bytes) => deflating(bytes, { level: 1, chunkSize: PIECE_BYTES }) },
    zstd: {
      encoding: ZSTD,
      compress: (bytes) =>
        zstdCompressing(bytes, { chunkSize: PIECE_BYTES, params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
    },
  };

const EXPANDERS: ReadonlyMap<number, Expand> = new Map<number, Expand>([
  [RAW, (bytes) => Promise.resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))],
  [DEFLATE, (bytes, most) => inflating(bytes, { maxOutputLength: most, chunkSize: PIECE_BYTES })],
  [
    ZSTD,
    (bytes, most) =>
      zstdExpanding(bytes, {
        maxOutputLength: most,
        chunkSize: PIECE_BYTES,
        params: { [constants.ZSTD_d_windowLogMax]: MOST_WINDOW_LOG },
      }),
  ],
]);

interface Packed {
  readonly encoding: number;
  readonly payload: Uint8Array;
}

/** As it is where compression is not worth its time. */
export async function pack(content: Uint8Array, packing: Packing): Promise<Packed> {
  const raw = { encoding: RAW, payload: content };
  if (packing === "fast") return raw;
  const { encoding, compress } = PACKERS[packing];
  const sample = content.subarray(0, SAMPLE_BYTES);
  const tried = await compress(sample);
  if (tried.length > sample.length * WORTH) return raw;
  const payload = sample.length === content.length ? tried : await compress(content);
  return payload.length > content.length * WORTH ? raw : { encoding, payload };
}

/** Undefined: this version does not know the encoding. */
export function expanderOf(encoding: number): Expand | undefined {
  return EXPANDERS.get(encoding);
}
