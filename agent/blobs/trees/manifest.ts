/**
 * The manifest of a tree of files: every path, and which part of which blob is where in each file. It is stored as a blob itself, so
 * that one reference, recorded in the database, vouches for all of it. Pure.
 */

import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import { Origins } from "../../host/origins.ts";
import { BlobError } from "../content/blob-error.ts";
import { isRef } from "../content/refs.ts";

export const MANIFEST_FORMAT = 1;

const Size = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Mode = Type.Integer({ minimum: 0, maximum: 0o777 });
/** `` is the root, where the tree is a single file, such as the image of a disk. */
const Path = Type.String({ maxLength: 4_096 });

/** `[at, length, blob, from]`: bytes of the file, and where in which blob of the manifest they are. */
const Piece = Type.Tuple([Size, Size, Size, Size]);
export type Piece = Static<typeof Piece>;

const FileEntry = Type.Object({
  path: Path,
  type: Type.Literal("file"),
  mode: Mode,
  size: Size,
  /** By `at`, without overlaps. What no piece covers is zeros. */
  pieces: Type.Array(Piece),
});
export type FileEntry = Static<typeof FileEntry>;
const Entry = Type.Union([
  FileEntry,
  Type.Object({ path: Path, type: Type.Literal("directory"), mode: Mode }),
  Type.Object({ path: Path, type: Type.Literal("link"), target: Type.String({ minLength: 1, maxLength: 4_095 }) }),
]);
export type Entry = Static<typeof Entry>;

const TreeManifest = Type.Object({
  format: Type.Integer(),
  kind: Type.Enum(["tree", "disk", "memory", "snapshot"]),
  /** What a memory image was made on. */
  origins: Type.Optional(Origins),
  /** References of further manifests that belong to it, by what they are: they live as long as this one. */
  parts: Type.Optional(Type.Record(Type.String({ pattern: "^[a-z]{1,32}$" }), Type.String())),
  /** The uploader's own words about the tree. */
  note: Type.Optional(Type.String()),
  /** Reference and length of the content of each blob, in the order of their first use. */
  blobs: Type.Array(Type.Tuple([Type.String(), Type.Integer({ minimum: 1 })])),
  /** By path; a directory before what is in it. */
  entries: Type.Array(Entry, { minItems: 1 }),
});
export type TreeManifest = Static<typeof TreeManifest>;

const valid = Compile(TreeManifest);

/** The same manifest always has the same bytes. */
export function writeManifest({ format, kind, origins, parts, note, blobs, entries }: TreeManifest): Buffer {
  return Buffer.from(JSON.stringify({ format, kind, origins, parts, note, blobs, entries }));
}

/** @throws {BlobError} damaged, unreadable */
export function readManifest(ref: string, content: Uint8Array): TreeManifest {
  const wrong = (why: string, cause?: unknown) =>
    new BlobError("damaged", `the manifest ${ref} is damaged: ${why}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(content).toString("utf8"));
  } catch (cause) {
    throw wrong("it is not readable", cause);
  }
  const format = typeof value === "object" && value !== null && "format" in value ? value.format : undefined;
  if (typeof format === "number" && format !== MANIFEST_FORMAT)
    throw new BlobError(
      "unreadable",
      `the manifest ${ref} has format ${format}, and this version reads ${MANIFEST_FORMAT}`,
    );
  if (!valid.Check(value)) throw wrong("its fields are not those of a manifest");
  const why = problemOf(value);
  if (why !== undefined) throw wrong(why);
  return value;
}

/** Bytes of all files that are not zeros: about what a download writes. */
export function dataBytes({ entries }: Pick<TreeManifest, "entries">): number {
  return files(entries).reduce((sum, { pieces }) => sum + pieces.reduce((bytes, [, length]) => bytes + length, 0), 0);
}

export function files(entries: readonly Entry[]): FileEntry[] {
  return entries.filter((entry) => entry.type === "file");
}

function problemOf({ parts = {}, blobs, entries }: TreeManifest): string | undefined {
  const bad = [...Object.values(parts), ...blobs.map(([ref]) => ref)].find((ref) => !isRef(ref));
  if (bad !== undefined) return `${bad} is no reference of a blob`;
  const types = new Map<string, Entry["type"]>();
  for (const [index, entry] of entries.entries()) {
    const { path } = entry;
    const why = index === 0 ? rootProblem(entry, entries.length) : pathProblem(path, types);
    if (why !== undefined) return why;
    types.set(path, entry.type);
    const piece = entry.type === "file" ? pieceProblem(entry, blobs) : undefined;
    if (piece !== undefined) return `${path}: ${piece}`;
  }
  return undefined;
}

function rootProblem({ path, type }: Entry, count: number): string | undefined {
  if (path !== "" || type === "link") return "it does not begin with its root";
  return type === "file" && count > 1 ? "its root is a file with others in it" : undefined;
}

/** A path stays in the tree: it is one name in a directory that came before, and no link leads anywhere. */
function pathProblem(path: string, types: ReadonlyMap<string, Entry["type"]>): string | undefined {
  const cut = path.lastIndexOf("/");
  const names = path.split("/");
  if (names.some((name) => name === "" || name === "." || name === ".." || name.includes("\0")))
    return `it names ${JSON.stringify(path)}`;
  if (types.has(path)) return `it names ${path} twice`;
  if (types.get(cut < 0 ? "" : path.slice(0, cut)) !== "directory") return `${path} is in no directory of it`;
  return undefined;
}

function pieceProblem({ size, pieces }: FileEntry, blobs: TreeManifest["blobs"]): string | undefined {
  let end = 0;
  for (const [at, length, index, from] of pieces) {
    const blob = blobs[index];
    if (blob === undefined) return `it has a piece of blob ${index}, and there are ${blobs.length}`;
    if (length === 0 || from + length > blob[1]) return `a piece is not within its blob ${index}`;
    if (at < end || at + length > size) return `a piece at ${at} is not within the file, or over another one`;
    end = at + length;
  }
  return undefined;
}
