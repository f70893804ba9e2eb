/**
 * Builds the console's page: hashed files, each compressed ahead, so that the server compresses nothing. Fails when what a
 * browser loads has grown beyond its bound.
 */

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Rolldown } from "vite";

/** Most bytes, compressed: of what the page loads before it shows anything, and of what a lazy part loads besides. */
const BOUNDS = { "first load": 60_000, xterm: 130_000, chart: 40_000, "build-files": 60_000 } as const;

export async function buildConsolePage(root: string, to: string): Promise<void> {
  rmSync(to, { recursive: true, force: true });
  const configFile = join(root, "console/vite.config.ts");
  const built = (await build({ configFile, logLevel: "warn", build: { outDir: to } })) as Rolldown.RolldownOutput;
  const sizes = compress(to);
  checkSizes(built.output, sizes);
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

function checkSizes(output: Output, sizes: ReadonlyMap<string, number>): void {
  const chunks = output.filter((file): file is Chunk => file.type === "chunk");
  const entry = chunks.find(({ isEntry }) => isEntry);
  if (entry === undefined) throw new Error("the build of the console has no entry");
  const first = new Set(loadedBy(entry, chunks));
  const sum = (files: Iterable<string>) => [...files].reduce((total, file) => total + (sizes.get(file) ?? 0), 0);
  const found: Record<string, number> = { "first load": sum([...first, "index.html"]) };
  for (const chunk of chunks.filter(({ isDynamicEntry }) => isDynamicEntry)) {
    found[chunk.name] = sum(loadedBy(chunk, chunks).filter((file) => !first.has(file)));
  }
  for (const [part, most] of Object.entries(BOUNDS)) {
    const bytes = found[part];
    if (bytes === undefined) throw new Error(`the build of the console has no part '${part}'`);
    if (bytes > most) throw new Error(`the console's ${part} has ${bytes} bytes compressed, and may have ${most}`);
  }
}

/** The files that a chunk cannot do without. */
function loadedBy(chunk: Chunk, chunks: readonly Chunk[]): string[] {
  const needed = chunk.imports.flatMap((name) => chunks.filter(({ fileName }) => fileName === name));
  const styles = [...(chunk.viteMetadata?.importedCss ?? [])];
  return [chunk.fileName, ...styles, ...needed.flatMap((each) => loadedBy(each, chunks))];
}
