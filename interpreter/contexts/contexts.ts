/** All contexts, in the order of their creation, and the default one of each language. */

import type { Launch } from "../kernels/kernel.ts";
import type { Language } from "../kernels/languages.ts";
import { Context } from "./context.ts";
import { HeldKernel } from "./held-kernel.ts";
import type { Sandbox } from "./sandbox.ts";

/** Each context is a process; a sandbox has memory for fewer. */
const MOST_CONTEXTS = 256;

export interface ContextsDeps {
  readonly languages: ReadonlyMap<string, Language>;
  readonly sandbox: Sandbox;
  /** Of contexts that name no directory. */
  readonly home: string;
  /** How to start a kernel in this directory. */
  readonly launch: (cwd: string) => Launch;
  readonly isDirectory: (path: string) => boolean;
}

const ALIASES: Readonly<Record<string, string>> = { js: "javascript", ts: "typescript" };
const DEFAULT_LANGUAGE = "python";

/** The name of a language as the server knows it: without blanks and capitals, `js` and `ts` in full. */
export function languageName(given: string | undefined): string {
  const name = given?.trim().toLowerCase() ?? "";
  if (name === "") return DEFAULT_LANGUAGE;
  return Object.hasOwn(ALIASES, name) ? (ALIASES[name] ?? name) : name;
}

export class Contexts {
  readonly #deps: ContextsDeps;
  readonly #all = new Map<string, Context>();
  readonly #defaults = new Map<string, Promise<Context>>();

  constructor(deps: ContextsDeps) {
    this.#deps = deps;
  }

  list(): Context[] {
    return [...this.#all.values()];
  }

  find(id: string): Context | undefined {
    return this.#all.get(id);
  }

  /** @throws Error with the reason for the client */
  async create(language: string, cwd?: string): Promise<Context> {
    const { languages, home, launch, isDirectory, sandbox } = this.#deps;
    const known = languages.get(language);
    if (known === undefined)
      throw new Error(
        `there is no language '${language.slice(0, 100)}'; there are ${[...languages.keys()].join(", ")}`,
      );
    if (this.#all.size >= MOST_CONTEXTS) throw new Error(`there are ${MOST_CONTEXTS} contexts already`);
    const directory = cwd === undefined || cwd === "" ? home : cwd;
    const exists = isDirectory(directory);
    if (!exists && known.needsDirectory && directory !== home)
      throw new Error(`Failed to set working directory: ${directory.slice(0, 1_000)} is not a directory`);
    const place = launch([directory, home, "/"].find(isDirectory) ?? "/");
    const kernel = new HeldKernel({ start: known.start, launch: place, sandbox });
    const context = new Context({ language, cwd: directory, kernel, sandbox });
    this.#all.set(context.id, context);
    try {
      if (!known.startsLate) await context.start();
    } catch (error) {
      this.#all.delete(context.id);
      throw error;
    }
    return context;
  }

  /** The context of runs that name none, made when it is first needed. @throws as `create` */
  async default(language: string): Promise<Context> {
    const made = this.#defaults.get(language) ?? this.create(language);
    this.#defaults.set(language, made);
    try {
      return await made;
    } catch (error) {
      if (this.#defaults.get(language) === made) this.#defaults.delete(language);
      throw error;
    }
  }

  async remove(context: Context): Promise<void> {
    this.#all.delete(context.id);
    const made = this.#defaults.get(context.language);
    if ((await made?.catch(() => undefined)) === context) this.#defaults.delete(context.language);
    await context.remove();
  }

  /** Ends all kernels. */
  async stop(): Promise<void> {
    await Promise.all(this.list().map((context) => this.remove(context)));
  }
}
