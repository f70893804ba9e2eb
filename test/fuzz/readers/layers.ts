/** Fuzzes the reader of layers of uploaded images: the node reads them before Docker unpacks them. */

import { Readable } from "node:stream";
import { extract } from "tar-stream";
import { createLayerEntries } from "../../../agent/builds/images/layer-entries.ts";
import { tarOf } from "../../support/images/tar.ts";
import { must, type Reader } from "../reader.ts";
import { withChecksums } from "./archives.ts";

const BLOCK = 512;
const TYPE_AT = 156;
const SIZE_AT = 124;
/** A problem shows only a part of the archive's name, and few words around it. */
const LONGEST_PROBLEM = 200;
const CONTENT = "y".repeat(700);

/** Changes the type of the entry whose header is at that block. */
function typed(layer: Buffer, block: number, type: string): Buffer {
  layer.write(type, block * BLOCK + TYPE_AT);
  return withChecksums(layer);
}

const record = (text: string) => {
  const length = text.length + 3;
  return `${length + String(length).length - 1} ${text}\n`;
};
const extended = (type: string, records: string) => typed(tarOf({ about: records, file: CONTENT }), 0, type);

/** A sparse file in GNU's format: the header holds the map of its pieces, the content is the data between the holes. */
function sparse(): Buffer {
  const layer = tarOf({ "hole.img": CONTENT });
  layer.write("00000000000\0", 386);
  layer.write("00000001274\0", 398);
  layer.write("37777777777\0", 483);
  return typed(layer, 0, "S");
}

function numbered(size: number): Buffer {
  const layer = tarOf({ file: CONTENT });
  layer.fill(0, SIZE_AT, SIZE_AT + 12);
  layer.writeUInt8(0x80, SIZE_AT);
  layer.writeUInt32BE(size, SIZE_AT + 8);
  return withChecksums(layer);
}

export const layers: readonly Reader[] = [
  {
    name: "layer-entries",
    promise:
      "never throws; says the same in however many pieces, in few printable characters; refuses what another program reads as a sparse file",
    seeds: () => [
      tarOf({ "etc/hello": "world", "a/": "", "srv/file": CONTENT }),
      Buffer.concat([typed(tarOf({ link: "", "dir/": "" }), 0, "2"), tarOf({ after: CONTENT })]),
      sparse(),
      extended("x", record("path=other/name") + record("size=700")),
      extended("x", record("GNU.sparse.major=1") + record("GNU.sparse.name=hole.img")),
      extended("x", record(`path=${"n".repeat(300)}`) + record("GNU.sparse.map=0")),
      extended("g", record("comment=text")),
      typed(tarOf({ "././@LongLink": "long/".repeat(40), file: CONTENT }), 0, "L"),
      numbered(CONTENT.length),
    ],
    words: [
      "S",
      "x",
      "g",
      "L",
      "K",
      "0",
      "5",
      "\0",
      "GNU.sparse.major=1",
      "GNU.sparse.",
      "size=512",
      "21 ",
      "ustar\0",
      "\xe2\x80\xae",
    ],
    longest: 6_000,
    share: 5_000,
    async check(given, random) {
      const input = random.below(4) === 0 ? given : withChecksums(given);
      const whole = problemOf([input]);
      const pieces: Buffer[] = [];
      for (let at = 0; at < input.length; ) {
        const piece = input.subarray(at, at + 1 + random.below(random.below(4) === 0 ? 3 : 700));
        pieces.push(piece);
        at += piece.length;
      }
      must(problemOf(pieces) === whole, `in pieces: ${problemOf(pieces)}, as a whole: ${whole}`);
      if (whole === undefined) {
        const holes = await sparseFileOf(input);
        must(holes === undefined, `'${holes}' was passed and is a sparse file`);
        return;
      }
      must(whole.length <= LONGEST_PROBLEM && !/[\p{C}\p{Zl}\p{Zp}]/u.test(whole), `the reason is ${whole}`);
    },
  },
];

function problemOf(pieces: readonly Buffer[]): string | undefined {
  const entries = createLayerEntries();
  for (const piece of pieces) entries.push(piece);
  return entries.problem;
}

/** Resolves to the first sparse file's name. tar-stream reads up to the first two blocks of zeros, where Docker ends too. */
async function sparseFileOf(archive: Buffer): Promise<string | undefined> {
  const unpack = extract();
  const source = Readable.from([archive.subarray(0, endOf(archive))]);
  source.pipe(unpack);
  try {
    for await (const entry of unpack) {
      const { header } = entry;
      const { byteOffset = 0 } = header as { readonly byteOffset?: number };
      const type = archive.toString("latin1", byteOffset - BLOCK + TYPE_AT, byteOffset - BLOCK + TYPE_AT + 1);
      if (type === "S" || Object.keys(header.pax ?? {}).some((key) => key.startsWith("GNU.sparse.")))
        return header.name;
      entry.resume();
    }
  } catch {
    // tar-stream does not read on, and Docker need not either.
  } finally {
    source.destroy();
    unpack.destroy();
  }
  return undefined;
}

function endOf(archive: Buffer): number {
  let zeros = 0;
  for (let at = 0; at + BLOCK <= archive.length; at += BLOCK) {
    zeros = archive.subarray(at, at + BLOCK).every((byte) => byte === 0) ? zeros + 1 : 0;
    if (zeros === 2) return at + BLOCK;
  }
  return archive.length;
}
