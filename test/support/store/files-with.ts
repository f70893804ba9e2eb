/** Finds the files that hold a text, byte by byte, even where no query reaches: in free pages and logs of a database. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Lists the names of files under `directory`, at any depth, that hold the text in clear or in base64. */
export async function filesWith(directory: string, text: string): Promise<string[]> {
  const needles = [Buffer.from(text), Buffer.from(Buffer.from(text).toString("base64").slice(0, -4))];
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const found = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => {
      const bytes = await readFile(join(entry.parentPath, entry.name));
      return needles.some((needle) => bytes.includes(needle)) ? [entry.name] : [];
    });
  return (await Promise.all(found)).flat();
}
