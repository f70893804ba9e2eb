/** Logs a page in by a one-time link, as a person does. */

import type { Page } from "playwright-core";

/** Resolves when the page shows the list of sandboxes. */
export async function logInByLink(page: Page, link: string): Promise<void> {
  await page.goto(link);
  // Its first moment takes no press, which Playwright waits for.
  await page.getByRole("button", { name: /^Log in as / }).click();
  await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
}
