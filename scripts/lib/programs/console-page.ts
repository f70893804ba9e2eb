/**
 * Builds the console's page: hashed files, each compressed ahead, so that the server compresses nothing. Fails when what a
 * browser loads has grown beyond its bound.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Rolldown } from "vite";
import { BOUNDS, beyondBounds, type Sizes } from "./console-sizes.ts";

/** @throws {Error} when a part is larger than its bound, or has none */
export async function buildConsolePage(root: string, to: string): Promise<Sizes> {
  rmSync(to, { recursive: true, force: true });
  const configFile = join(root, "console/vite.config.ts");
  const built = await asForUsers(() => build({ configFile, logLevel: "warn", build: { outDir: to } }));
  const sizes = sizesOf((built as Rolldown.RolldownOutput).output, compress(to));
  const wrong = beyondBounds(sizes, BOUNDS);
  if (wrong.length > 0) throw new Error(wrong.join("\n"));
  return sizes;
}

/** Vite takes NODE_ENV from its caller, and with any other one puts the libraries' checks for developers into the page. */
async function asForUsers<T>(work: () => Promise<T>): Promise<T> {
  const { NODE_ENV: before } = process.env;
  process.env["NODE_ENV"] = "production";
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env["NODE_ENV"];
    else process.env["NODE_ENV"] = before;
  }
}

/** Bytes of each file as browsers get it. */
function compress(folder: string): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (extname(name) === "") continue;
    const content = readFileSync(join(folder, name));
    const small = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
    writeFileSync(join(folder, `${name}.br`), small);
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
    sizes.set(name, small.length);
  }
  return sizes;
}

type Output = Rolldown.RolldownOutput["output"];
type Chunk = Output[0];

function sizesOf(output: Output, sizes: ReadonlyMap<string, number>): Sizes {
  const chunks = output.filter((file): file is Chunk => file.type === "chunk");
  const entry = chunks.find(({ isEntry }) => isEntry);
  if (entry === undefined) throw new Error("the build of the console has no entry");
  const first = new Set(loadedBy(entry, chunks));
  const sum = (files: Iterable<string>) => [...files].reduce((total, file) => total + (sizes.get(file) ?? 0), 0);
  const found: Record<string, number> = { "first load": sum([...first, "index.html"]) };
  for (const chunk of chunks.filter(({ isDynamicEntry }) => isDynamicEntry)) {
    found[chunk.name] = sum(loadedBy(chunk, chunks).filter((file) => !first.has(file)));
  }
  return found;
}

/** The files that a chunk cannot do without. */
function loadedBy(chunk: Chunk, chunks: readonly Chunk[]): string[] {
  const needed = chunk.imports.flatMap((name) => chunks.filter(({ fileName }) => fileName === name));
  const styles = [...(chunk.viteMetadata?.importedCss ?? [])];
  return [chunk.fileName, ...styles, ...needed.flatMap((each) => loadedBy(each, chunks))];
}
