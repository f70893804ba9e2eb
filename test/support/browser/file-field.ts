/** The field in which the console's user changes a file. It draws the lines in view, each as an element of its own. */

import type { Locator } from "playwright-core";

/** Types the text in the place of all that is there, as a person does. */
export async function retype(field: Locator, text: string): Promise<void> {
  const { keyboard } = field.page();
  await field.click();
  await keyboard.press("ControlOrMeta+a");
  await keyboard.type(text);
}

/** The lines that the field draws. */
export async function linesOf(field: Locator): Promise<string[]> {
  return field.locator(".cm-line").allTextContents();
}
