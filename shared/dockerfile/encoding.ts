/** Recognises files that are not UTF-8: PowerShell's `>` writes UTF-16. Pure. */

export const OTHER_TEXT = "is not UTF-8 text, but perhaps UTF-16: save it as UTF-8";

/** @param text a file's bytes, read as UTF-8 */
export function isOtherText(text: string): boolean {
  return text.includes("\0");
}
