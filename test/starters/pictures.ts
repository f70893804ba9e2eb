/** Pictures of screens for the eyes of a person: kept below the directory that SVC_TEST_PICTURES names. */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

export async function keepPicture(name: string, png: Uint8Array): Promise<void> {
  const directory = process.env.SVC_TEST_PICTURES;
  if (directory === undefined) return;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, `${name.replaceAll(" ", "-")}.png`), png);
}
