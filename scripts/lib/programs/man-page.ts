/** The manual pages of `svc` in the format of man(7), made from the definitions of its commands. Pure. */

import type { Argument, Command, Group, Option } from "../../../cli/definition.ts";
import { COMMON, shownOptions } from "../../../cli/program.ts";
import { EXIT_CODES, VARIABLES } from "./cli-words.ts";

export interface ManPage {
  /** `svc-sandbox-create.1` */
  readonly file: string;
  readonly text: string;
}

interface Described {
  readonly commands: readonly Command[];
  readonly groups: readonly Group[];
  readonly version: string;
}

/** One page for the command as a whole, and one for each command that help shows. */
export function manPages({ commands, groups, version }: Described): readonly ManPage[] {
  const shown = commands.filter(({ hidden }) => hidden !== true);
  return [
    { file: "svc.1", text: overview({ commands: shown, groups, version }) },
    ...shown.map((command) => ({ file: `${nameOf(command)}.1`, text: pageOf(command, version) })),
  ];
}

function nameOf({ name }: Command): string {
  return `svc-${name.replaceAll(" ", "-")}`;
}

function overview({ commands, groups, version }: Described): string {
  const list = (own: readonly Command[]) =>
    own.flatMap((command) => tagged(`${bold(`svc ${command.name}`)}${wordsOf(command)}`, command.about));
  const alone = commands.filter(({ name }) => !name.includes(" "));
  return page("svc", version, [
    heading("Name"),
    `svc ${plain("-")} ${inline("sandboxes on your own machines: use them, and run the platform")}`,
    heading("Synopsis"),
    `${bold("svc")} ${italic("command")} ${plain("[options]")}`,
    heading("Description"),
    inline("Sandboxes for AI agents on your own machines. Each command has a page of its own, and `--help`."),
    ...groups.flatMap(({ name, about }) => [
      subheading(`svc ${name}: ${about}`),
      ...list(commands.filter((command) => command.name.startsWith(`${name} `))),
    ]),
    subheading("Commands without a group"),
    ...list(alone),
    heading("Options of every command"),
    ...COMMON.flatMap(optionOf),
    heading("Environment"),
    ...VARIABLES.flatMap(({ name, second, about }) =>
      tagged([name, second].flatMap((one) => (one === undefined ? [] : [bold(one)])).join(", "), about),
    ),
    ...tagged(bold("SVC_INSTANCE"), "the platform of this machine that has this name"),
    ...tagged(bold("NO_COLOR"), "no colours on a terminal"),
    heading("Files"),
    ...tagged(italic("~/.config/svc/config.toml"), "contexts with their keys, readable by you alone"),
    ...tagged(italic("/etc/svc/admin-token"), "operators' token, for root on the platform's machine"),
    heading("Exit status"),
    ...EXIT_CODES.flatMap(([code, meaning]) => tagged(bold(code), meaning)),
    heading("See also"),
    commands.map((command) => `${bold(nameOf(command))}(1)`).join(",\n"),
  ]);
}

function pageOf(command: Command, version: string): string {
  const { about, more, example } = command;
  const args = command.arguments ?? [];
  const options = [...(command.options ?? []), ...shownOptions(command), ...COMMON];
  return page(nameOf(command), version, [
    heading("Name"),
    `${plain(nameOf(command))} ${plain("-")} ${inline(about)}`,
    heading("Synopsis"),
    `${bold(`svc ${command.name}`)} ${plain("[options]")}${wordsOf(command)}`,
    ...(more === undefined ? [] : [heading("Description"), inline(more)]),
    ...(args.length === 0 ? [] : [heading("Arguments"), ...args.flatMap(argumentOf)]),
    heading("Options"),
    ...options.flatMap(optionOf),
    heading("Example"),
    ".nf",
    plain(example),
    ".fi",
    heading("See also"),
    `${bold("svc")}(1)`,
  ]);
}

function page(name: string, version: string, lines: readonly string[]): string {
  return `.TH "${plain(name.toUpperCase())}" 1 "" "svc ${plain(version)}" "Sandboxes"\n${lines.join("\n")}\n`;
}

function wordsOf(command: Command): string {
  return (command.arguments ?? []).map(({ name }) => ` ${italic(name)}`).join("");
}

function argumentOf({ name, about }: Argument): readonly string[] {
  return tagged(italic(name), about);
}

function optionOf({ flags, about, choices }: Option): readonly string[] {
  return tagged(bold(flags), choices === undefined ? about : `${about}: ${choices.join(", ")}`);
}

function tagged(tag: string, about: string): readonly string[] {
  return [".TP", tag, inline(about)];
}

const heading = (text: string) => `.SH "${plain(text.toUpperCase())}"`;
const subheading = (text: string) => `.SS "${plain(text)}"`;
const bold = (text: string) => `\\fB${escaped(text)}\\fR`;
const italic = (text: string) => `\\fI${escaped(text)}\\fR`;

/** A line of text, in which words between backticks are bold. */
function inline(text: string): string {
  return guarded(
    text
      .split("`")
      .map((part, index) => (index % 2 === 1 ? bold(part) : escaped(part)))
      .join(""),
  );
}

function plain(text: string): string {
  return guarded(escaped(text));
}

/** A hyphen that is typed must stay one when it is copied, and a quote would end the argument of a macro. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("~", "\\(ti")
    .replaceAll("^", "\\(ha")
    .replaceAll('"', "\\(dq")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll(/[^\u0020-\u007e]/gu, codeOf);
}

/** groff without its preprocessor reads bytes alone. */
function codeOf(sign: string): string {
  return `\\[u${(sign.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}]`;
}

/** A line that begins with a dot would be a request. */
function guarded(text: string): string {
  return text.startsWith(".") ? `\\&${text}` : text;
}
