// A page by Playwright in the Chromium that is up already.
import { createRequire } from "node:module";

const { chromium } = createRequire("/home/user/")("playwright-core");
const browser = await chromium.connectOverCDP("http://localhost:9222");
const page = await (await browser.newContext()).newPage();
await page.setContent("<title>first</title>");
console.log(`6 * 7 = ${await page.evaluate(() => 6 * 7)}`);
await page.close();
process.exit(0);
