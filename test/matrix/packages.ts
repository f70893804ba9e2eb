/** Packages of this machine for a sandbox, which has no registry: with all that they need, as one archive. */

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../support/platform/programs.ts";

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The packages with all that they depend on, by name; optional ones where they are installed. */
export function closureOf(modules: string, names: readonly string[]): readonly string[] {
  const found = new Set<string>();
  const add = (name: string) => {
    if (found.has(name)) return;
    found.add(name);
    const manifest = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")) as Manifest;
    for (const other of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
      // One that lies in the package itself comes with it.
      const isInside = existsSync(join(modules, name, "node_modules", other));
      const isMissing = !existsSync(join(modules, other)) && manifest.optionalDependencies?.[other] !== undefined;
      if (!isInside && !isMissing) add(other);
    }
  };
  for (const name of names) add(name);
  return [...found].toSorted();
}

/**
 * A gzipped tar with these packages below `node_modules`.
 * @param root has `node_modules`
 */
export async function archiveOf(root: string, names: readonly string[]): Promise<Buffer> {
  const work = await mkdtemp(join(tmpdir(), "svc-matrix-"));
  try {
    const file = join(work, "packages.tar.gz");
    const paths = closureOf(join(root, "node_modules"), names).map((name) => `node_modules/${name}`);
    await run("tar", ["-czf", file, "-C", root, ...paths]);
    return await readFile(file);
  } finally {
    await rm(work, { recursive: true });
  }
}
