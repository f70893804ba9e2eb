/**
 * Reads a Dockerfile as the steps of a template's build. What a build cannot do is refused with its line, never left out: a
 * template that lacks a part of its Dockerfile is found much later. Pure.
 */

import { DockerfileParser, type Instruction } from "dockerfile-ast";
import type { ModifiableInstruction } from "dockerfile-ast/lib/modifiableInstruction.js";
import type { PropertyInstruction } from "dockerfile-ast/lib/propertyInstruction.js";

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
  from: string | undefined;
  hasUser: boolean;
  hasWorkdir: boolean;
  entrypoint: readonly string[] | string | undefined;
  command: readonly string[] | string | undefined;
}

/** @param given values of `ARG`, by name */
export function readDockerfile(text: string, given: Readonly<Record<string, string>> = {}): Recipe {
  const parsed = DockerfileParser.parse(text);
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
    reading.from = substituted(contentOf(instruction).split(/\s+/, 1)[0] ?? "", reading);
  },

  ARG(instruction, reading) {
    for (const [name, value] of pairsOf(instruction)) {
      const known = reading.given[name] ?? value;
      if (known === undefined) throw refused(instruction, `ARG ${name} has no value: give one as a build argument`);
      if (reading.from === undefined) before.set(reading, { ...before.get(reading), [name]: known });
      else {
        reading.steps.push({ type: "ENV", args: [name, known] });
        reading.notes.push(`line ${lineOf(instruction)}: ARG ${name} is an environment variable, also in sandboxes`);
      }
    }
  },

  ENV(instruction, reading) {
    const pairs = pairsOf(instruction);
    reading.steps.push({ type: "ENV", args: pairs.flatMap(([name, value = ""]) => [name, value]) });
  },

  RUN(instruction, reading) {
    flagsOf(instruction, []);
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

/** Values of `ARG` before `FROM`, which only `FROM` sees. */
const before = new WeakMap<Reading, Readonly<Record<string, string>>>();

function substituted(text: string, reading: Reading): string {
  return text.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced?: string, plain?: string) => {
    return before.get(reading)?.[braced ?? plain ?? ""] ?? all;
  });
}

function copy(instruction: Instruction, { steps }: Reading): void {
  const flags = flagsOf(instruction, ["chown", "chmod", "link"]);
  const words = copied(instruction);
  if (words.length < 2) throw refused(instruction, "a source and a destination are needed");
  const destination = words.at(-1) ?? "";
  if (words.length > 2 && !destination.endsWith("/")) {
    throw refused(instruction, "the destination of several sources must end with /");
  }
  for (const source of words.slice(0, -1)) {
    const path = source.replace(/^\/+/, "");
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
  const only = /^<<-?\s*(['"]?)(\w+)\1[ \t]*\n([^]*?)\n?[ \t]*\2\s*$/.exec(content);
  if (only?.[3] !== undefined) return only[3];
  return content.includes("<<") ? content : joined(content);
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
  return properties.map((property) => [property.getName(), property.getValue() ?? undefined] as const);
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
