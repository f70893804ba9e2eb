/** The field for files, which a library draws under the page's policy: it forbids styles in elements and HTML from text. */

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { sharedConsole, violationsInBothThemes } from "../support/browser/browser.ts";
import { linesOf } from "../support/browser/file-field.ts";
import { sharedSandbox } from "../support/sandbox/sdk.ts";

const console = sharedConsole();
const sandbox = sharedSandbox({ timeoutMs: 1_200_000 });

async function opened(name: string, content: string): Promise<Page> {
  await sandbox().files.write(`/home/user/${name}`, content);
  const { platform, page: open } = console();
  const page = await open();
  await page.goto(`${platform.apiUrl}/console/sandboxes/${sandbox().sandboxId}/files`);
  await page.getByRole("button", { name: `Open ${name}`, exact: true }).click();
  await page.getByLabel(`/home/user/${name}`).waitFor();
  return page;
}

interface Element {
  readonly ownerDocument: {
    readonly defaultView: { getComputedStyle(of: unknown): { readonly whiteSpace: string } };
  };
}

/** In the page. */
const whiteSpaceOf = (element: unknown) =>
  (element as Element).ownerDocument.defaultView.getComputedStyle(element).whiteSpace;

test("a program has colours and line numbers, is searched, and is saved by Ctrl S", async () => {
  const page = await opened("app.py", "def one():\n    return 'x'\n");
  const field = page.getByLabel("/home/user/app.py");
  // The library's own styles are in force.
  expect(await field.evaluate(whiteSpaceOf)).toBe("break-spaces");
  await field.getByText("def", { exact: true }).waitFor();
  await expect.poll(() => linesOf(field)).toEqual(["def one():", "    return 'x'", ""]);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await field.click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("print(1)");
  await page.keyboard.press("ControlOrMeta+s");
  await page.getByText("Saved.", { exact: true }).waitFor();
  expect(await sandbox().files.read("/home/user/app.py")).toBe("def one():\n    return 'x'\nprint(1)");
  await page.keyboard.press("ControlOrMeta+f");
  await page.keyboard.type("return");
  await page.locator(".cm-searchMatch").first().waitFor();
  // Enter goes to the next place, and sends no form.
  await page.keyboard.press("Enter");
  await page.locator(".cm-searchMatch-selected").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".cm-searchMatch").first().waitFor({ state: "detached" });
});

test("a character that nobody sees is shown, and Tab leaves the field", async () => {
  const page = await opened("strange.sh", "echo safe\u202Efas ohce\n");
  await page.locator(".cm-specialChar").waitFor();
  const field = page.getByLabel("/home/user/strange.sh");
  await field.click();
  await page.keyboard.press("Tab");
  expect(await sandbox().files.read("/home/user/strange.sh")).toBe("echo safe\u202Efas ohce\n");
  expect(await page.getByRole("button", { name: "Save", exact: true }).isDisabled()).toBe(true);
});

test("of a file of a mebibyte the lines in view are drawn alone, and it can be changed", async () => {
  const page = await opened("large.txt", `${"x".repeat(63)}\n`.repeat(16_000));
  const field = page.getByLabel("/home/user/large.txt");
  await field.locator(".cm-line").first().waitFor();
  expect((await linesOf(field)).length).toBeLessThan(1_000);
  await field.click();
  await page.keyboard.press("ControlOrMeta+Home");
  await page.keyboard.type("first ");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved.", { exact: true }).waitFor();
  expect((await sandbox().files.read("/home/user/large.txt")).startsWith("first xxx")).toBe(true);
});
