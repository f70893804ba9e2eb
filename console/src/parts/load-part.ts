/** Loads a part of the page that comes when it is needed first. */

const NOT_LOADED =
  "A part of this page could not be loaded. The platform may have been upgraded since the page was opened, and has it no more: load the page again.";

/** Browsers name the file alone, and the files of another version have other names. @throws {Error} */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new Error(NOT_LOADED, { cause });
  }
}
