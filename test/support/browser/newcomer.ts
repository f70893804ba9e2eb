/** Somebody at a page whose presses and fields are counted, and the time until the answer is seen. */

import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { TASKS, type Task } from "./tasks.ts";

interface Newcomer {
  press(target: Locator): Promise<void>;
  /** Opens the list of a choice, and takes one. */
  choose(target: Locator, label: string): Promise<void>;
  type(target: Locator, text: string): Promise<void>;
  /** Ctrl K, the text, Enter. */
  find(text: string): Promise<void>;
  /** The answer is there: prints what it took, and expects what the documents say. */
  answered(): void;
}

/** The time begins now. */
export function newcomerAt(page: Page, task: keyof typeof TASKS): Newcomer {
  const { asks, ...expected }: Task = TASKS[task];
  const begun = performance.now();
  const counted = { presses: 0, fields: 0 };
  return {
    async press(target) {
      counted.presses++;
      await target.click();
    },
    async choose(target, label) {
      counted.presses += 2;
      await target.selectOption({ label });
    },
    async type(target, text) {
      counted.fields++;
      await target.fill(text);
    },
    async find(text) {
      counted.fields++;
      await page.keyboard.press("Control+k");
      await page.keyboard.type(text);
      await page.keyboard.press("Enter");
    },
    answered() {
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      process.stdout.write(`| ${asks} | ${counted.presses} presses | ${counted.fields} fields | ${seconds} s |\n`);
      expect(counted).toEqual({ presses: expected.presses, fields: expected.fields });
    },
  };
}

/** A link of the navigation, which every screen has. */
export function screenLink(page: Page, name: string): Locator {
  return page.getByRole("navigation").getByRole("link", { name, exact: true });
}
