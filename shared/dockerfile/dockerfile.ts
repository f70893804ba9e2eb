/**
 * Reads a Dockerfile as the steps of a template's build. What a build cannot do is refused with its line, never left out: a
 * template that lacks a part of its Dockerfile is found much later. Pure.
 */

import { DockerfileParser, type Instruction } from "dockerfile-ast";
import type { ModifiableInstruction } from "dockerfile-ast/lib/modifiableInstruction.js";
import type { PropertyInstruction } from "dockerfile-ast/lib/propertyInstruction.js";
import { SubstitutionError, substitute } from "./substitute.ts";

/** The file cannot be built as it is; the message says where and why. */
export class DockerfileError extends Error {}

export interface Step {
  readonly type: "RUN" | "COPY" | "ENV" | "WORKDIR" | "USER";
  readonly args: readonly string[];
}

export interface Recipe {
  /** An image, or a template. */
  readonly from: string;
  readonly steps: readonly Step[];
  readonly startCommand: string | undefined;
  /** What the reader should know. */
  readonly notes: readonly string[];
}

interface Reading {
  readonly steps: Step[];
  readonly notes: string[];
  readonly given: Readonly<Record<string, string>>;
  /** Values of `ARG` before `FROM`, which FROM sees, and an ARG of the same name after it. */
  readonly before: Map<string, string>;
  /** What ARG and ENV after FROM have set, as far as it is known without the image. */
  readonly variables: Map<string, string>;
  /** Names of ENV: it wins against ARG. */
  readonly envs: Set<string>;
  from: string | undefined;
  hasUser: boolean;
  hasWorkdir: boolean;
  entrypoint: readonly string[] | string | undefined;
  command: readonly string[] | string | undefined;
}

/**
 * Reads the line ends of Windows, and skips a byte order mark at the beginning.
 * @param given values of `ARG`, by name
 */
export function readDockerfile(text: string, given: Readonly<Record<string, string>> = {}): Recipe {
  const parsed = DockerfileParser.parse(text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n"));
  if (parsed.getEscapeCharacter() !== "\\")
    throw new DockerfileError("the Dockerfile has another escape character than \\");
  // As in Docker, steps run as root in / until the file says otherwise.
  const reading: Reading = {
    steps: [
      { type: "USER", args: ["root"] },
      { type: "WORKDIR", args: ["/"] },
    ],
    notes: [],
    given,
    before: new Map(),
    variables: new Map(),
    envs: new Set(),
    from: undefined,
    hasUser: false,
    hasWorkdir: false,
    entrypoint: undefined,
    command: undefined,
  };
  for (const instruction of parsed.getInstructions()) read(instruction, reading);
  if (reading.from === undefined) throw new DockerfileError("the Dockerfile has no FROM");
  if (!reading.hasUser) reading.steps.push({ type: "USER", args: ["user"] });
  if (!reading.hasWorkdir) reading.steps.push({ type: "WORKDIR", args: ["/home/user"] });
  return { from: reading.from, steps: reading.steps, startCommand: startCommand(reading), notes: reading.notes };
}

function read(instruction: Instruction, reading: Reading): void {
  const keyword = instruction.getKeyword().toUpperCase();
  const reader = readers[keyword];
  if (reader !== undefined) return reader(instruction, reading);
  if (IGNORED.has(keyword)) {
    reading.notes.push(`line ${lineOf(instruction)}: ${keyword} means nothing to a sandbox`);
    return;
  }
  throw refused(instruction, `${keyword} is not supported`);
}

const IGNORED: ReadonlySet<string> = new Set(["EXPOSE", "LABEL", "MAINTAINER", "VOLUME", "HEALTHCHECK", "STOPSIGNAL"]);

const readers: Readonly<Record<string, (instruction: Instruction, reading: Reading) => void>> = {
  FROM(instruction, reading) {
    if (reading.from !== undefined) {
      throw refused(instruction, "a template has one FROM; copy what another build made, or upload an image");
    }
    flagsOf(instruction, []);
    reading.from = known(contentOf(instruction).split(/\s+/, 1)[0] ?? "", instruction, reading.before);
  },

  ARG: argument,

  ENV(instruction, reading) {
    const pairs = pairsOf(instruction);
    reading.steps.push({ type: "ENV", args: pairs.flatMap(([name, value = ""]) => [name, value]) });
    for (const [name, value = ""] of pairs) {
      reading.envs.add(name);
      remember(name, value, reading.variables);
    }
  },

  RUN(instruction, reading) {
    for (const mount of flagValues(instruction, "mount")) {
      const type = /(?:^|,)type=(\w+)/.exec(mount)?.[1] ?? "bind";
      if (type !== "cache") throw refused(instruction, `--mount of type ${type} is not supported`);
      reading.notes.push(
        `line ${lineOf(instruction)}: --mount=type=cache keeps no cache, and its files stay in the template`,
      );
    }
    flagsOf(instruction, ["mount"]);
    const words = jsonWords(instruction);
    const command = words === undefined ? script(instruction) : words.map(quoted).join(" ");
    reading.steps.push({ type: "RUN", args: [command] });
  },

  COPY: copy,

  ADD(instruction, reading) {
    const words = copied(instruction);
    const special = words.slice(0, -1).find((word) => /^[a-z]+:\/\/|^git@|\.(tar(\.\w+)?|tgz|tbz2|txz)$/.test(word));
    if (special !== undefined) {
      throw refused(instruction, `ADD of '${special}' is not supported: RUN curl, or COPY and RUN tar -x`);
    }
    copy(instruction, reading);
  },

  WORKDIR(instruction, reading) {
    reading.hasWorkdir = true;
    reading.steps.push({ type: "WORKDIR", args: [unquoted(contentOf(instruction).trim())] });
  },

  USER(instruction, reading) {
    reading.hasUser = true;
    reading.steps.push({ type: "USER", args: [contentOf(instruction).trim()] });
  },

  CMD(instruction, reading) {
    reading.command = jsonWords(instruction) ?? contentOf(instruction);
  },

  ENTRYPOINT(instruction, reading) {
    reading.entrypoint = jsonWords(instruction) ?? contentOf(instruction);
  },
};

/** Variables that Docker sets by itself when a file asks for them; here only their giver knows the values. */
const AUTOMATIC = /^(TARGET|BUILD)(PLATFORM|OS|ARCH|VARIANT)$/;

function argument(instruction: Instruction, reading: Reading): void {
  const { given, before, variables, notes } = reading;
  for (const [name, own] of pairsOf(instruction)) {
    const chosen = given[name] ?? (own === undefined ? before.get(name) : undefined);
    // What was chosen elsewhere is plain text, as in Docker.
    const value = chosen === undefined ? own : plain(chosen);
    if (value === undefined && AUTOMATIC.test(name))
      throw refused(instruction, `ARG ${name} has no value: give one as a build argument`);
    if (reading.from === undefined) {
      if (value !== undefined) before.set(name, known(value, instruction, before));
    } else if (value === undefined) {
      notes.push(`line ${lineOf(instruction)}: ARG ${name} has no value`);
    } else if (!reading.envs.has(name)) {
      reading.steps.push({ type: "ENV", args: [name, value] });
      notes.push(`line ${lineOf(instruction)}: ARG ${name} is an environment variable, also in sandboxes`);
      remember(name, value, variables);
    }
  }
}

/** Keeps the value of a variable, unless it depends on one of the image. */
function remember(name: string, value: string, variables: Map<string, string>): void {
  let isKnown = true;
  const lookUp = (asked: string) => {
    isKnown &&= variables.has(asked);
    return variables.get(asked);
  };
  try {
    const result = substitute(value, lookUp);
    if (isKnown) variables.set(name, result);
    else variables.delete(name);
  } catch (error) {
    // The build says what is wrong with it.
    if (!(error instanceof SubstitutionError)) throw error;
    variables.delete(name);
  }
}

/** The text with its variables, of which each must have a value, or one in its place. */
function known(text: string, instruction: Instruction, variables: ReadonlyMap<string, string>): string {
  const lookUp = (name: string) => {
    const value = variables.get(name);
    if (value === undefined && !new RegExp(`\\$\\{${name}:?[-+]`).test(text))
      throw refused(instruction, `$${name} has no value that the file gives: ARG and ENV set one`);
    return value;
  };
  try {
    return substitute(text, lookUp);
  } catch (error) {
    throw error instanceof SubstitutionError ? refused(instruction, error.message) : error;
  }
}

function copy(instruction: Instruction, { steps, variables }: Reading): void {
  const flags = flagsOf(instruction, ["chown", "chmod", "link"]);
  const words = copied(instruction);
  if (words.length < 2) throw refused(instruction, "a source and a destination are needed");
  const destination = words.at(-1) ?? "";
  if (words.length > 2 && !destination.endsWith("/")) {
    throw refused(instruction, "the destination of several sources must end with /");
  }
  for (const source of words.slice(0, -1)) {
    const path = known(source, instruction, variables).replace(/^\/+/, "");
    steps.push({
      type: "COPY",
      args: [path === "" ? "." : path, destination, flags["chown"] ?? "root", flags["chmod"] ?? ""],
    });
  }
}

function copied(instruction: Instruction): readonly string[] {
  const content = contentOf(instruction);
  if (content.includes("<<"))
    throw refused(instruction, "a text in the Dockerfile cannot be copied: put it into a file");
  return jsonWords(instruction) ?? joined(content).split(/\s+/).filter(Boolean).map(unquoted);
}

/** The text for a shell. Lines of comments between its lines are Docker's, not the shell's. */
function script(instruction: Instruction): string {
  const content = contentOf(instruction);
  const [, tabs, , end, given] = /^<<(-?)\s*(['"]?)(\w+)\2[ \t]*\n([^]*?)\n?[ \t]*\3\s*$/.exec(content) ?? [];
  if (given !== undefined) {
    const text = tabs === "-" ? given.replaceAll(/^\t+/gm, "") : given;
    return text.startsWith("#!") ? program(text, end ?? "") : text;
  }
  return content.includes("<<") ? content : joined(content);
}

/** A text that names its own interpreter is run by that, as a file. @param end a line that the text does not have */
function program(text: string, end: string): string {
  const file = '"$svc_file"';
  return (
    `svc_file=$(mktemp) && cat >${file} <<'${end}'\n${text}\n${end}\n` +
    `chmod 0755 ${file} && ${file}; svc_code=$?; rm -f ${file}; exit $svc_code`
  );
}

/** Lines that end with a backslash are one, without the comments and empty lines between them. */
function joined(content: string): string {
  return content
    .split("\n")
    .filter((line, index) => index === 0 || !/^\s*(#.*)?$/.test(line))
    .join("\n")
    .replaceAll(/\\[ \t]*\n/g, " ");
}

function contentOf(instruction: Instruction): string {
  return instruction.getRawArgumentsContent() ?? "";
}

/** The words of the exec form; undefined: the shell form. */
function jsonWords(instruction: Instruction): readonly string[] | undefined {
  const content = joined(contentOf(instruction)).trim();
  if (!content.startsWith("[")) return undefined;
  try {
    const words = JSON.parse(content) as unknown;
    if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  } catch {
    // As in Docker, what only looks like JSON is the shell form.
  }
  return undefined;
}

function pairsOf(instruction: Instruction): readonly (readonly [name: string, value: string | undefined])[] {
  const properties = (instruction as PropertyInstruction).getProperties();
  return properties.map((property) => {
    const value = property.getValue() ?? undefined;
    // Between single quotes nothing is a variable; the platform would read one.
    const isPlain = property.getAssignmentOperator() === "=" && property.getUnescapedValue()?.startsWith("'") === true;
    return [property.getName(), isPlain && value !== undefined ? plain(value) : value] as const;
  });
}

/** The text as a value in which the platform finds no variable. */
function plain(text: string): string {
  return text.replaceAll("$", "\\$");
}

function flagValues(instruction: Instruction, name: string): readonly string[] {
  const flags = (instruction as ModifiableInstruction).getFlags();
  return flags.filter((flag) => flag.getName() === name).map((flag) => flag.getValue() ?? "");
}

function flagsOf(instruction: Instruction, known: readonly string[]): Readonly<Record<string, string>> {
  const flags = (instruction as ModifiableInstruction).getFlags();
  const unknown = flags.find((flag) => !known.includes(flag.getName()));
  if (unknown !== undefined) throw refused(instruction, `--${unknown.getName()} is not supported`);
  return Object.fromEntries(flags.map((flag) => [flag.getName(), flag.getValue() ?? ""]));
}

function startCommand({ entrypoint, command }: Reading): string | undefined {
  const text = (words: readonly string[] | string) =>
    typeof words === "string" ? joined(words) : words.map(quoted).join(" ");
  if (entrypoint === undefined) return command === undefined || command.length === 0 ? undefined : text(command);
  // As in Docker, the shell form of ENTRYPOINT takes no arguments of CMD.
  if (typeof entrypoint === "string" || command === undefined) return text(entrypoint);
  return `${text(entrypoint)} ${typeof command === "string" ? `/bin/sh -c ${quoted(command)}` : text(command)}`;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function unquoted(word: string): string {
  return word.replace(/^(["'])(.*)\1$/, "$2");
}

function lineOf(instruction: Instruction): number {
  return instruction.getRange().start.line + 1;
}

function refused(instruction: Instruction, why: string): Error {
  return new DockerfileError(`Dockerfile, line ${lineOf(instruction)}: ${why}`);
}
