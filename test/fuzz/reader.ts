/** A reader of untrusted bytes as the fuzzer sees it, and the loop that feeds one. */

import { AppError, type ErrorCode } from "../../shared/http/errors.ts";
import { mutate } from "./mutate.ts";
import { createRandom, type Random } from "./random.ts";

export interface Reader {
  readonly name: string;
  /** What holds for every input, in a sentence. */
  readonly promise: string;
  /** Inputs that are right, or nearly so. */
  readonly seeds: () => readonly (string | Buffer)[] | Promise<readonly (string | Buffer)[]>;
  /** Words of the input's language. */
  readonly words?: readonly string[];
  /** Bytes of the longest input. */
  readonly longest?: number;
  /** Inputs of the run that belongs to the tests: about a second's worth. */
  readonly share: number;
  /** Throws where the promise is broken. `random` gives what the reader wants besides the input: where to cut it, say. */
  readonly check: (input: Buffer, random: Random) => void | Promise<void>;
  /** Before the first input and after the last, where servers are needed. */
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
  /** The first input's number: a finding is had again with its own. */
  readonly from?: number;
  /** Ends earlier when this much time has passed. */
  readonly limitMs?: number;
}

const LONGEST = 4_096;
/** One input may not cost more of the processor: otherwise an attacker could keep the reader busy with such inputs. */
const MOST_CPU_US = 2_000_000;
const SLOW_MS = 1_000;

/** Ends at the first finding. `inputs` counts those that kept the promise. */
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

/** What `read` returns; undefined when it threw an error with one of the codes. Any other error is a broken promise. */
export function unlessRefused<T>(codes: readonly ErrorCode[], read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError && codes.includes(error.code)) return undefined;
    throw error;
  }
}

/** The same for what is read over time. */
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
