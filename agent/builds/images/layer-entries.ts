/**
 * Checks the headers of a layer as it passes, before Docker unpacks it. Refuses sparse entries, which hold gigabytes of
 * zeros in a few bytes, and entries that two programs could read differently. Reads headers as Docker does (Go's
 * archive/tar), and no contents. Pure.
 */

const BLOCK = 512;
/** Largest size of an entry that describes the next one, in bytes: Docker's limit. */
const MOST_DESCRIBING = 1024 ** 2;
const TYPE_AT = 156;
/** Links, devices, directories and pipes: Docker takes no content for them, other programs do. */
const WITHOUT_CONTENT = /^[1-6]$/;
const SPARSE_KEYS = "GNU.sparse.";
const SHOWN = 100;

export interface LayerEntries {
  push(chunk: Buffer): void;
  /** Why Docker must not unpack the layer, as soon as that is known. */
  readonly problem: string | undefined;
}

/** What one header says about the entry after it. */
interface Described {
  readonly size: number | undefined;
  readonly named: boolean;
}

interface Describing {
  readonly name: string;
  /** Whether it describes the entry after it, or all entries after it. */
  readonly of: "next" | "all";
  readonly bytes: number;
  readonly parts: Buffer[];
}

const NOTHING: Described = { size: undefined, named: false };

export function createLayerEntries(): LayerEntries {
  const state = {
    problem: undefined as string | undefined,
    /** The incomplete block at the end of the chunk before. */
    rest: Buffer.alloc(0),
    /** Bytes of contents and padding that are still to be skipped. */
    skip: 0,
    /** The pax header that is being read. It describes the next entry, or all later ones. */
    describing: undefined as Describing | undefined,
    described: NOTHING,
    /** Blocks of zeros: two end the archive. */
    zeros: 0,
  };

  const fail = (problem: string) => void (state.problem ??= problem);

  const header = (block: Buffer) => {
    if (block.every((byte) => byte === 0)) return void state.zeros++;
    if (state.zeros > 0) return fail("it continues after a block of zeros");
    const name = text(block.subarray(0, 100));
    const size = numberIn(block.subarray(124, 136));
    if (size === undefined || !isHeader(block)) return fail(`the header of '${shown(name)}' is damaged`);
    const type = String.fromCharCode(block[TYPE_AT] ?? 0);
    if (type === "S") return fail(`'${shown(name)}' is a sparse file`);
    if (/^[xgLK]$/.test(type)) describing(name, type, size);
    else entry(name, type, size);
  };

  /** Begins a header entry (pax, GNU long name), which describes the entries after it. */
  const describing = (name: string, type: string, size: number) => {
    if (size > MOST_DESCRIBING) return fail(`the header of '${shown(name)}' is too large`);
    state.skip = padded(size);
    if (type === "L" || type === "K") state.described = { ...state.described, named: true };
    else if (size > 0) state.describing = { name, of: type === "x" ? "next" : "all", bytes: size, parts: [] };
    return undefined;
  };

  const entry = (name: string, type: string, size: number) => {
    const { size: instead, named } = state.described;
    state.described = NOTHING;
    const content = instead ?? size;
    const old = type === "\0" && (named || name.endsWith("/"));
    if (content > 0 && (WITHOUT_CONTENT.test(type) || old))
      return fail(`'${shown(name)}' has content, although it is not a regular file`);
    state.skip = padded(content);
    return undefined;
  };

  /** Applies an extended header, all of which has been read. */
  const described = ({ name, of }: Describing, bytes: Buffer) => {
    const found = recordsIn(bytes);
    if (found === undefined) return fail(`the extended header of '${shown(name)}' is damaged`);
    if ([...found.keys()].some((key) => key.startsWith(SPARSE_KEYS)))
      return fail(`'${shown(found.get("GNU.sparse.name") ?? found.get("path") ?? name)}' is a sparse file`);
    const size = found.get("size");
    if (size !== undefined && !/^\d{1,15}$/.test(size)) return fail(`the size of '${shown(name)}' is not a number`);
    if (of === "all") {
      // At a global header Docker drops the headers of the next entry, and ignores a size. Other programs do neither.
      if (size !== undefined || state.described !== NOTHING)
        fail(`the global header '${shown(name)}' is refused, because programs interpret it differently`);
      return undefined;
    }
    const named = state.described.named || found.has("path");
    state.described = { size: size === undefined ? undefined : Number(size), named };
    return undefined;
  };

  const passOver = (chunk: Buffer): Buffer => {
    const taken = chunk.subarray(0, state.skip);
    state.skip -= taken.length;
    const { describing } = state;
    if (describing !== undefined) {
      describing.parts.push(taken);
      if (state.skip === 0) {
        state.describing = undefined;
        described(describing, Buffer.concat(describing.parts).subarray(0, describing.bytes));
      }
    }
    return chunk.subarray(taken.length);
  };

  return {
    get problem() {
      return state.problem;
    },
    push(chunk) {
      let left = chunk;
      while (left.length > 0 && state.problem === undefined && state.zeros < 2) {
        if (state.skip > 0) {
          left = passOver(left);
          continue;
        }
        const needed = BLOCK - state.rest.length;
        const block = Buffer.concat([state.rest, left.subarray(0, needed)]);
        left = left.subarray(needed);
        state.rest = block.length < BLOCK ? block : Buffer.alloc(0);
        if (block.length === BLOCK) header(block);
      }
    },
  };
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}

function text(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end === -1 ? field.length : end);
}

/** Octal digits, or a number in base 256; undefined if the field is neither; Docker refuses it too. */
function numberIn(field: Buffer): number | undefined {
  const [first = 0, ...others] = field;
  if ((first & 0x80) === 0) {
    const digits = text(Buffer.from(field.toString("latin1").replace(/^[ \0]+/, ""), "latin1")).trimEnd();
    return /^[0-7]*$/.test(digits) ? Number.parseInt(`0${digits}`, 8) : undefined;
  }
  // 0x40: negative.
  if ((first & 0x40) !== 0) return undefined;
  const value = others.reduce((sum, byte) => sum * 256 + byte, first & 0x3f);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** True when the checksum is right; some programs add up signed bytes. */
function isHeader(block: Buffer): boolean {
  const expected = numberIn(block.subarray(148, 156));
  let unsigned = 0;
  let signed = 0;
  for (const [at, byte] of block.entries()) {
    const counted = at >= 148 && at < 156 ? 0x20 : byte;
    unsigned += counted;
    signed += counted > 127 ? counted - 256 : counted;
  }
  return expected === unsigned || expected === signed;
}

/** Parses pax records, `<length> <key>=<value>\n`; undefined for malformed bytes. An empty value removes the key. */
function recordsIn(bytes: Buffer): Map<string, string> | undefined {
  const found = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const digits = bytes.toString("latin1", at, Math.max(at, space));
    const length = Number(digits);
    const record = bytes.subarray(space + 1, at + length);
    const equals = record.indexOf(0x3d);
    if (!/^[1-9]\d{0,6}$/.test(digits) || at + length > bytes.length || record.at(-1) !== 0x0a || equals < 1)
      return undefined;
    const key = record.toString("utf8", 0, equals);
    const value = record.toString("utf8", equals + 1, record.length - 1);
    if (value === "" && !key.startsWith(SPARSE_KEYS)) found.delete(key);
    else found.set(key, value);
    at += length;
  }
  return found;
}

function shown(name: string): string {
  return name.slice(0, SHOWN).replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "?");
}
