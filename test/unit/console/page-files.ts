/** Files of the page that need a browser's own objects. A test puts those there which it is about. */

import { join } from "node:path";

/** By its path at run time: the types of browsers are not those of this program. */
export async function pageFile<T>(path: string): Promise<T> {
  return (await import(join(import.meta.dirname, "../../../console/src", path))) as T;
}
