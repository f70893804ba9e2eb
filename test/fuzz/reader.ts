/** A reader of untrusted bytes as the fuzzer sees it, and the loop that feeds inputs to it. */

import { AppError, type ErrorCode } from "../../shared/http/errors.ts";
import { mutate } from "./mutate.ts";
import { createRandom, type Random } from "./random.ts";

export interface Reader {
  readonly name: string;
  /** One sentence that holds for every input. */
  readonly promise: string;
  /** Inputs that are right, or nearly right. */
  readonly seeds: () => readonly (string | Buffer)[] | Promise<readonly (string | Buffer)[]>;
  /** Words of the input's language. */
  readonly words?: readonly string[];
  /** The length of the longest input, in bytes. */
  readonly longest?: number;
  /** How many inputs the tests feed: about a second's worth. */
  readonly share: number;
  /** Throws when the input breaks the promise. `random` decides everything besides the input, such as where to cut it. */
  readonly check: (input: Buffer, random: Random) => void | Promise<void>;
  /** `begin` runs before the first input and `end` after the last one, for readers that need servers. */
  readonly begin?: () => Promise<void>;
  readonly end?: () => Promise<void>;
}

export interface Finding {
  readonly reader: string;
  readonly seed: number;
  readonly index: number;
  readonly input: Buffer;
  readonly error: unknown;
}

interface Fed {
  readonly inputs: number;
  readonly finding: Finding | undefined;
}

interface Feeding {
  readonly seed: number;
  readonly count: number;
  /** The number of the first input; the number of a finding reproduces it. */
  readonly from?: number;
  /** Ends the run early when this much time has passed. */
  readonly limitMs?: number;
}

const LONGEST = 4_096;
/** The limit of processor time for one input: an attacker could keep a slower reader busy with such inputs. */
const MOST_CPU_US = 2_000_000;
const SLOW_MS = 1_000;

/** Feeds inputs until the first finding. `inputs` counts those that kept the promise. */
export async function feed(reader: Reader, feeding: Feeding): Promise<Fed> {
  await reader.begin?.();
  try {
    return await feedOpened(reader, feeding);
  } finally {
    await reader.end?.();
  }
}

async function feedOpened(reader: Reader, { seed, count, from = 0, limitMs = Infinity }: Feeding): Promise<Fed> {
  const seeds = (await reader.seeds()).map((one) => (typeof one === "string" ? Buffer.from(one, "latin1") : one));
  const material = { seeds, words: reader.words ?? [], longest: reader.longest ?? LONGEST };
  const begun = performance.now();
  for (let index = from; index < from + count; index += 1) {
    const random = createRandom(seed, index);
    const input = mutate(material, random);
    const at = performance.now();
    const cpu = process.cpuUsage();
    try {
      const checking = reader.check(input, random);
      if (checking !== undefined) await checking;
      if (performance.now() - at > SLOW_MS && process.cpuUsage(cpu).user > MOST_CPU_US)
        throw new Error("one input took more than two seconds of the processor");
    } catch (error) {
      return { inputs: index - from, finding: { reader: reader.name, seed, index, input, error } };
    }
    if (at - begun > limitMs) return { inputs: index - from + 1, finding: undefined };
  }
  return { inputs: count, finding: undefined };
}

/** @throws {Error} with the sentence, when it does not hold */
export function must(holds: boolean, sentence: string): void {
  if (!holds) throw new Error(sentence);
}

/**
 * Returns what `read` returns, or undefined when it throws an error with one of the codes. Any other error breaks the
 * promise.
 */
export function unlessRefused<T>(codes: readonly ErrorCode[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError && codes.includes(error.code)) return undefined;
    throw error;
  }
}

/** Does the same as `unlessRefused` for a `read` that takes time. */
export async function unlessRefusedLater<T>(
  codes: readonly ErrorCode[],
  read: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof AppError && codes.includes(error.code)) return undefined;
    throw error;
  }
}

/** Text of a finding: what broke, the input, and the command that reproduces it. */
export function describeFinding({ reader, seed, index, input, error }: Finding): string {
  const shown = input.length > 2_000 ? `${input.toString("hex", 0, 2_000)}…` : input.toString("hex");
  return [
    `${reader}, input ${index} of seed ${seed}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    `  as text: ${JSON.stringify(input.toString("latin1").slice(0, 1_000))}`,
    `  in hexadecimal: ${shown}`,
    `  again: npm run fuzz -- ${reader} 1 --seed ${seed} --from ${index}`,
  ].join("\n");
}
