/** What a command is, as data: the parser, `--help`, completion and docs/cli.md are made from it. */

import type { Context } from "./context.ts";
import type { Options } from "./options.ts";

export interface Argument {
  /** As commander writes it: `<sandbox>`, `[path]`, `[command...]`. */
  readonly name: string;
  readonly about: string;
}

export interface Option {
  /** As commander writes it: `-t, --timeout <duration>`. */
  readonly flags: string;
  readonly about: string;
  /** How the text of the option is read. `list`, `pairs`, `variables`, `labels`: the option may be repeated. Absent: text, or a switch. */
  readonly read?: "integer" | "duration" | "list" | "pairs" | "variables" | "labels";
  readonly choices?: readonly string[];
}

/** Resolves to the exit code where it is not 0. */
export type Action = (context: Context, args: Args, options: Options) => Promise<number | void>;

/** The arguments in their order. A required one is always there, and an argument with dots is the rest. */
export interface Args {
  readonly first: string;
  readonly second: string;
  readonly third: string;
  readonly rest: readonly string[];
  readonly given: number;
}

export interface Command {
  /** With its group: `sandbox create`. */
  readonly name: string;
  readonly about: string;
  readonly more?: string;
  readonly arguments?: readonly Argument[];
  readonly options?: readonly Option[];
  /** `list`: it shows a table and takes -o, --no-headers and --watch. `table`: the same once. `one`: it shows one thing and takes -o. */
  readonly shows?: "list" | "table" | "one";
  /** One line for a shell. */
  readonly example: string;
  /** Its last argument is a program with options of its own, also without `--` before it. */
  readonly runs?: true;
  /** Not in help and completion. */
  readonly hidden?: true;
  /** Loads the code of the command, when it is called. */
  readonly load: () => Promise<Action>;
}

export interface Group {
  readonly name: string;
  readonly about: string;
}

/** All that `svc` has. */
export interface Known {
  readonly commands: readonly Command[];
  readonly groups: readonly Group[];
}
