/** Makes the parser of the command line from the definitions of the commands. */

import { InvalidArgumentError, type OutputConfiguration, Command as Parser, Option as ParserOption } from "commander";
import type { Args, Command, Group, Option } from "./definition.ts";
import { usage } from "./failure.ts";
import { FIRST_STEPS } from "./first-steps.ts";
import { withWayOut } from "./nearest.ts";
import type { Options } from "./options.ts";
import { escapeText } from "./output/escape.ts";
import type { Terminals } from "./output/output.ts";
import { secondsOf } from "./output/time.ts";

export interface ProgramOptions {
  readonly commands: readonly Command[];
  readonly groups: readonly Group[];
  readonly write: Terminals;
  readonly act: (command: Command, args: Args, options: Options) => Promise<void>;
}

const ABOUT = "Sandboxes for AI agents on your own machines: use them, and run the platform.";

/** Options that every command takes. */
export const COMMON: readonly Option[] = [
  { flags: "--context <name>", about: "a context of `svc context list`, in place of the current one" },
  { flags: "--request-timeout <duration>", about: "how long a call of the API may take (120s)", read: "duration" },
];

/** Options of commands that show something. */
export function shownOptions({ shows }: Pick<Command, "shows">): readonly Option[] {
  if (shows === undefined) return [];
  const output: Option = {
    flags: "-o, --output <form>",
    about: "how it is shown",
    choices: ["json", "yaml", "wide", "name"],
  };
  if (shows === "one") return [output];
  const headers: Option = { flags: "--no-headers", about: "without the line of titles" };
  if (shows === "table") return [output, headers];
  return [output, headers, { flags: "-w, --watch", about: "goes on, and shows what is new or has changed" }];
}

export function createProgram({ commands, groups, write, act }: ProgramOptions): Parser {
  const program = new Parser("svc")
    .description(ABOUT)
    .exitOverride()
    .enablePositionalOptions()
    .helpCommand(false)
    .option("-V, --version", "shows the version")
    .configureOutput({
      writeOut: (text) => void write.stdout.write(text),
      writeErr: (text) => void write.stderr.write(escapeText(text)),
      ...ofMistakes("svc"),
    })
    .addHelpText(
      "after",
      () => `\nFirst steps:\n${stepsIn()}\n\n\`svc COMMAND --help\` shows an example. docs/cli.md has all of them.\n`,
    );
  const parents = new Map<string, Parser>();
  for (const { name, about } of groups) {
    const parent = program.command(name).description(about).enablePositionalOptions().helpCommand(false);
    parents.set(name, parent.configureOutput(ofMistakes(`svc ${name}`)));
  }
  for (const command of commands) {
    const words = command.name.split(" ");
    const name = words.at(-1) ?? "";
    const parent = words.length === 1 ? program : parents.get(words[0] ?? "");
    if (parent === undefined) throw new Error(`the command ${command.name} has no group`);
    addCommand(parent.command(name, { hidden: command.hidden === true }), command, act);
  }
  return program;
}

function stepsIn(): string {
  const width = Math.max(...FIRST_STEPS.map(({ line }) => line.length));
  return FIRST_STEPS.map(({ line, about }) => `  ${line.padEnd(width)}  ${about}`).join("\n");
}

/** How the parser says what is wrong with a line. */
function ofMistakes(words: string, options: readonly Option[] = []): OutputConfiguration {
  return { outputError: (text, write) => write(withWayOut(text, options, `${words} --help`)) };
}

function addCommand(parser: Parser, command: Command, act: ProgramOptions["act"]): void {
  parser.description(command.more === undefined ? command.about : `${command.about}\n\n${command.more}`);
  parser.summary(command.about);
  for (const { name, about } of command.arguments ?? []) parser.argument(name, about);
  const options = [...(command.options ?? []), ...shownOptions(command), ...COMMON];
  for (const option of options) parser.addOption(parserOption(option));
  parser.configureOutput(ofMistakes(`svc ${command.name}`, options));
  parser.addHelpText("after", `\nExample:\n  ${command.example}\n`);
  parser.action(() => act(command, argsOf(command, parser.processedArgs), parser.opts()));
}

/** What `-o name` writes before an id: `svc node cordon node/n1` means the node n1, `--sandbox sandbox/i1` the sandbox i1. */
const KINDS: ReadonlySet<string> = new Set([
  "build",
  "context",
  "delivery",
  "key",
  "node",
  "project",
  "sandbox",
  "secret",
  "snapshot",
  "template",
  "volume",
  "webhook",
]);

function argsOf(command: Command, processed: readonly unknown[]): Args {
  const given = processed
    .map((value, index) => checked(command.arguments?.[index]?.name ?? "", value))
    .filter((value) => value !== undefined);
  const words = given.filter((value) => typeof value === "string");
  const [first = "", second = "", third = ""] = words;
  const rest = given.find((value): value is string[] => Array.isArray(value)) ?? [];
  return { first, second, third, rest, given: words.length };
}

/** `svc sandbox kill "$ID"` with a variable that is not set: the route of no id is another one. A program may have empty arguments. */
function checked(argument: string, value: unknown): unknown {
  const bare = withoutKind(argument, value);
  const isNeeded = argument.startsWith("<") ? argument !== "<command...>" : argument === "[sandbox...]";
  if (isNeeded && [bare].flat().includes("")) {
    throw usage(`the argument ${argument} is empty`, "a variable of the shell that is not set is empty");
  }
  return bare;
}

function withoutKind(argument: string, value: unknown): unknown {
  const kind = /\w+/.exec(argument)?.[0] ?? "";
  if (!KINDS.has(kind)) return value;
  if (Array.isArray(value)) return value.map((each) => withoutKind(argument, each));
  return typeof value === "string" && value.startsWith(`${kind}/`) ? value.slice(kind.length + 1) : value;
}

function parserOption({ flags, about, read, choices }: Option): ParserOption {
  const option = new ParserOption(flags, about);
  if (choices !== undefined) option.choices(choices);
  switch (read) {
    case undefined:
      if (KINDS.has(option.name()))
        option.argParser((text) => {
          if (text === "") throw new InvalidArgumentError("It is empty.");
          return withoutKind(option.name(), text);
        });
      break;
    case "integer":
      option.argParser((text) => {
        if (!/^-?\d{1,12}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
        return Number(text);
      });
      break;
    case "duration":
      option.argParser((text) => {
        const seconds = secondsOf(text);
        if (seconds === undefined) throw new InvalidArgumentError("It must be a duration such as 90s, 5m or 2h30m.");
        return seconds;
      });
      break;
    case "list":
      option.argParser((text, before: readonly string[] | undefined) => [...(before ?? []), ...text.split(",")]);
      break;
    case "pairs":
      option.argParser((text, before: Readonly<Record<string, string>> | undefined) => ({ ...before, ...pair(text) }));
      break;
    case "variables":
      option.argParser((text, before: Readonly<Record<string, string | undefined>> | undefined) => ({
        ...before,
        ...(/^[^=]+$/.test(text) ? { [text]: undefined } : pair(text)),
      }));
      break;
    case "labels":
      option.argParser((text, before: Readonly<Record<string, string>> | undefined) =>
        Object.assign({}, before, ...text.split(",").map(pair)),
      );
      break;
  }
  return option;
}

function pair(text: string): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at <= 0) throw new InvalidArgumentError("It must be name=value.");
  return { [text.slice(0, at)]: text.slice(at + 1) };
}
