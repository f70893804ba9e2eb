/**
 * `npm run fuzz -- [READER|all] [COUNT] [--seed S] [--from I]`: feeds COUNT inputs (100 000) to one reader, or to each, and
 * prints how many inputs kept the reader's promise. It prints the seed, which is another one each time unless given. The
 * exit status is 1 when a promise was broken. It needs neither root nor a platform.
 */

import { describeFinding, feed } from "./reader.ts";
import { readers } from "./readers.ts";

const COUNT = 100_000;

const { words, options } = commandLine(process.argv.slice(2));
const [wanted = "all", count = String(COUNT)] = words;
const seed = Number(options.get("seed") ?? Math.floor(Math.random() * 2 ** 31));
const from = Number(options.get("from") ?? 0);
const chosen = readers.filter(({ name }) => wanted === "all" || name === wanted);
if (chosen.length === 0 || !/^\d+$/.test(count) || !Number.isSafeInteger(seed) || !Number.isSafeInteger(from)) {
  console.error(`usage: npm run fuzz -- [READER|all] [COUNT] [--seed S] [--from I]\nreaders:`);
  for (const { name, promise } of readers) console.error(`  ${name.padEnd(26)} ${promise}`);
  process.exit(2);
}
console.log(`seed ${seed}`);
for (const reader of chosen) {
  const begun = performance.now();
  const { inputs, finding } = await feed(reader, { seed, count: Number(count), from });
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
  console.log(`${reader.name.padEnd(26)} ${String(inputs).padStart(9)} inputs  ${seconds.padStart(7)} s`);
  if (finding === undefined) continue;
  process.exitCode = 1;
  console.log(describeFinding(finding));
}

function commandLine(given: readonly string[]) {
  const words: string[] = [];
  const options = new Map<string, string>();
  for (let at = 0; at < given.length; at += 1) {
    const word = given[at] ?? "";
    if (!word.startsWith("--")) words.push(word);
    else options.set(word.slice(2), given[(at += 1)] ?? "");
  }
  return { words, options };
}
