/**
 * Reads a Dockerfile as the steps of a template's build. What a build cannot do is refused with its line, never left out: a
 * template that lacks a part of its Dockerfile is found much later. Pure.
 */

import { type Dockerfile, DockerfileParser, type Instruction } from "dockerfile-ast";
import { notesOfCommand, notesOfFlag, notesOfStart, notesOfSyntax } from "./command-notes.ts";
import { isOtherText, OTHER_TEXT } from "./encoding.ts";
import { isFileMode } from "./file-mode.ts";
import { DockerfileError, type InstructionText, lineOf, refused, textOf } from "./instruction-text.ts";
import { isOwnPlatform, OWN_PLATFORM, otherPlatform } from "./platform.ts";
import { commandOf, inShell, jsonWords, script, startCommandOf } from "./shell-text.ts";
import { namesDirectory } from "./sources.ts";
import { type NamedStage, neededStages, type Stage, splitStages, targetOf } from "./stages.ts";
import { SubstitutionError, substitute } from "./substitute.ts";
import { type Text, textsOf, valueInText } from "./texts.ts";
import { argumentsOf, valueIn, variablesOf } from "./variables.ts";
import { plain } from "./words.ts";

export interface Step {
  readonly type: "RUN" | "COPY" | "ENV" | "WORKDIR" | "USER";
  readonly args: readonly string[];
  /** Of a COPY: what is in the file that it copies; undefined: the folder has the files. */
  readonly text?: string;
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
  /** Names of all ARG. */
  readonly asked: Set<string>;
  /** Values of `ARG` before `FROM`, which FROM sees, and an ARG of the same name after it. */
  readonly before: Map<string, string>;
  /** What ARG and ENV after FROM have set, as far as it is known without the image. */
  readonly variables: Map<string, string>;
  /** Names of ENV: it wins against ARG. */
  readonly envs: Set<string>;
  from: string | undefined;
  hasUser: boolean;
  hasWorkdir: boolean;
  /** What `SHELL` says, for the shell forms after it; empty: the platform's own shell. */
  shell: readonly string[];
  entrypoint: readonly string[] | string | undefined;
  command: readonly string[] | string | undefined;
  /** Whether the stage that is read has a CMD of its own. */
  hasCommand: boolean;
}

/**
 * Reads the line ends of Windows, and skips a byte order mark at the beginning.
 * @param given values of `ARG`, by name
 * @param target name or number of the stage that is built; undefined: the last one
 */
export function readDockerfile(text: string, given: Readonly<Record<string, string>> = {}, target?: string): Recipe {
  if (isOtherText(text)) throw new DockerfileError(`the Dockerfile ${OTHER_TEXT}`);
  const parsed = DockerfileParser.parse(text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n"));
  if (parsed.getEscapeCharacter() !== "\\")
    throw new DockerfileError("the Dockerfile has another escape character than \\");
  // As in Docker, steps run as root in / until the file says otherwise.
  const reading: Reading = {
    steps: [
      { type: "USER", args: ["root"] },
      { type: "WORKDIR", args: ["/"] },
    ],
    notes: notesOfSyntax(parsed),
    given,
    asked: new Set(),
    before: new Map(),
    variables: new Map(),
    envs: new Set(),
    from: undefined,
    hasUser: false,
    hasWorkdir: false,
    shell: [],
    entrypoint: undefined,
    command: undefined,
    hasCommand: false,
  };
  const from = readStages(parsed, reading, target);
  if (!reading.hasUser) reading.steps.push({ type: "USER", args: ["user"] });
  if (!reading.hasWorkdir) reading.steps.push({ type: "WORKDIR", args: ["/home/user"] });
  for (const name of Object.keys(given))
    if (!reading.asked.has(name)) reading.notes.push(`no ARG asks for the build argument ${name}`);
  const start = startCommandOf(reading);
  return {
    from,
    steps: reading.steps,
    startCommand: start,
    notes: [...reading.notes, ...notesOfStart(start, reading)],
  };
}

/** Reads what makes the stage that is built. @returns the image that it is from */
function readStages(parsed: Dockerfile, reading: Reading, target: string | undefined): string {
  const split = splitStages(parsed.getInstructions());
  for (const instruction of split.before) read(instruction, reading);
  const stages = split.stages.map((stage) => named(stage, reading));
  const { needed, others } = neededStages(stages, targetOf(stages, target));
  for (const { from, name } of others)
    reading.notes.push(
      `line ${lineOf(from)}: the stage ${name || "without a name"} is left out, ${target === undefined ? "the last stage" : target} is not FROM it`,
    );
  const [first] = needed;
  if (first === undefined) throw new DockerfileError("the Dockerfile has no FROM");
  reading.from = imageOf(first, reading);
  for (const { body } of needed) {
    reading.hasCommand = false;
    for (const instruction of body) read(instruction, reading);
  }
  return reading.from;
}

function named(stage: Stage, reading: Reading): NamedStage {
  const { from } = stage;
  const [image = "", as, name = "", ...more] = textOf(from, ["platform"]).content.split(/\s+/);
  const isRead = image !== "" && (as === undefined || (as.toUpperCase() === "AS" && name !== "" && more.length === 0));
  if (!isRead) throw refused(from, "FROM takes an image, and may give it a name with AS");
  const value = valueIn(image, from);
  // As in Docker, an ARG before FROM that has no value is empty there. A name that lacks a part is told with the variable.
  const wayOut = "ARG sets one before the first FROM";
  const whole = known(value, from, new Map([...unsetOf(reading), ...variablesOfFrom(reading)]), wayOut);
  return {
    ...stage,
    image: /(^|[:@/])([-.:@/]|$)/.test(whole) ? known(value, from, variablesOfFrom(reading), wayOut) : whole,
    name,
  };
}

/** The image that the stage is from. */
function imageOf({ from, image }: NamedStage, reading: Reading): string {
  const platform = new Map(textOf(from, ["platform"]).flags).get("platform") ?? "";
  const given = known(platform, from, variablesOfFrom(reading));
  if (!isOwnPlatform(given)) throw refused(from, otherPlatform(given));
  if (image === "scratch") throw refused(from, EMPTY_IMAGE);
  return image;
}

function variablesOfFrom({ before }: Reading): ReadonlyMap<string, string> {
  return new Map([...OWN_PLATFORM, ...before]);
}

/** The names that an ARG before FROM has asked for. */
function unsetOf({ asked }: Reading): readonly (readonly [name: string, value: undefined])[] {
  return [...asked].map((name) => [name, undefined]);
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
  ARG: argument,

  ENV(instruction, reading) {
    const pairs = variablesOf(instruction);
    reading.steps.push({ type: "ENV", args: pairs.flat() });
    for (const [name, value] of pairs) {
      reading.envs.add(name);
      remember(name, value, reading.variables);
    }
  },

  RUN(instruction, reading) {
    const text = textOf(instruction, ["mount", "network"]);
    for (const flag of text.flags) reading.notes.push(...notesOfFlag(flag, instruction));
    reading.notes.push(...notesOfCommand(instruction, text, reading.shell));
    const words = jsonWords(text);
    reading.steps.push({ type: "RUN", args: [words === undefined ? script(text, reading.shell) : commandOf(words)] });
  },

  COPY: copy,

  ADD: copy,

  WORKDIR(instruction, reading) {
    reading.hasWorkdir = true;
    reading.steps.push({ type: "WORKDIR", args: [oneValue(instruction)] });
  },

  USER(instruction, reading) {
    reading.hasUser = true;
    reading.steps.push({ type: "USER", args: [oneValue(instruction)] });
  },

  SHELL(instruction, reading) {
    const words = jsonWords(textOf(instruction, []));
    if (words === undefined || words.length === 0)
      throw refused(instruction, 'SHELL takes a list of words, such as ["/bin/bash", "-c"]');
    reading.shell = words;
  },

  CMD(instruction, reading) {
    const text = textOf(instruction, []);
    const { content } = text;
    const words = reading.shell.length === 0 || content === "" ? content : [...reading.shell, content];
    reading.notes.push(...notesOfCommand(instruction, text, reading.shell));
    reading.command = jsonWords(text) ?? words;
    reading.hasCommand = true;
  },

  ENTRYPOINT(instruction, reading) {
    const text = textOf(instruction, []);
    reading.notes.push(...notesOfCommand(instruction, text, reading.shell));
    reading.entrypoint = jsonWords(text) ?? inShell(text.content, reading.shell);
    // As in Docker, an ENTRYPOINT takes nothing from the CMD of what its stage is from.
    if (!reading.hasCommand) reading.command = undefined;
  },
};

const EMPTY_IMAGE =
  "the image scratch is empty, and a sandbox needs at least a shell: name an image such as debian:stable-slim, or upload one";

function argument(instruction: Instruction, reading: Reading): void {
  const { given, before, variables, notes } = reading;
  for (const [name, own] of argumentsOf(instruction)) {
    reading.asked.add(name);
    // A file that asks for the platform gets it, as from Docker, unless it has a value of its own.
    const chosen = given[name] ?? (own === undefined ? (before.get(name) ?? OWN_PLATFORM.get(name)) : undefined);
    // What was chosen elsewhere is plain text, as in Docker.
    const value = chosen === undefined ? own : plain(chosen);
    if (reading.from === undefined) {
      const variables = new Map([...unsetOf(reading), ...variablesOfFrom(reading)]);
      if (value !== undefined) before.set(name, known(value, instruction, variables));
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
  const result = ifKnown(value, variables);
  if (result === undefined) variables.delete(name);
  else variables.set(name, result);
}

/** The text with its variables; undefined where one is the image's, and where the build will say what is wrong with it. */
function ifKnown(text: string, variables: ReadonlyMap<string, string>): string | undefined {
  let isKnown = true;
  const lookUp = (asked: string) => {
    isKnown &&= variables.has(asked);
    return variables.get(asked);
  };
  try {
    const result = substitute(text, lookUp);
    return isKnown ? result : undefined;
  } catch (error) {
    if (!(error instanceof SubstitutionError)) throw error;
    return undefined;
  }
}

/** The text with its variables, of which each must be known, or have a value in its place. */
function known(
  text: string,
  instruction: Instruction,
  variables: ReadonlyMap<string, string | undefined>,
  wayOut = "ARG and ENV set one",
): string {
  const lookUp = (name: string) => {
    const value = variables.get(name);
    if (!variables.has(name) && !new RegExp(`\\$\\{${name}:?[-+]`).test(text))
      throw refused(instruction, `$${name} has no value that the file gives: ${wayOut}`);
    return value;
  };
  try {
    return substitute(text, lookUp);
  } catch (error) {
    throw error instanceof SubstitutionError ? refused(instruction, error.message) : error;
  }
}

/** As in Docker, the rest of the line with its blanks. */
function oneValue(instruction: Instruction): string {
  const value = valueIn(textOf(instruction, []).content, instruction);
  if (value === "") throw refused(instruction, `${instruction.getKeyword()} takes a value`);
  return value;
}

function copy(instruction: Instruction, { steps, variables }: Reading): void {
  const text = textOf(instruction, ["chown", "chmod", "link", "from"]);
  const flags = new Map(text.flags);
  if (flags.has("from")) throw refused(instruction, ONE_IMAGE);
  const texts = textsOf(text, instruction);
  const words = copied(instruction, text);
  if (words.length < 2) throw refused(instruction, "a source and a destination are needed");
  const destination = words.at(-1) ?? "";
  if (texts.has(destination)) throw refused(instruction, `${destination} is a text, and no destination`);
  if (words.length > 2 && !namesDirectory(ifKnown(destination, variables) ?? destination)) {
    throw refused(instruction, "the destination of several sources must end with /");
  }
  const mode = modeOf(known(flags.get("chmod") ?? "", instruction, variables), instruction);
  const owner = flags.get("chown") || "root";
  for (const word of words.slice(0, -1)) {
    const written = texts.get(word);
    if (written !== undefined) {
      const content = contentOf(written, instruction, variables);
      // As in Docker, the file is not executable, whatever it begins with.
      steps.push({ type: "COPY", args: [written.name, destination, owner, mode || "644"], text: content });
      continue;
    }
    const source = known(word, instruction, variables);
    if (instruction.getKeyword() === "ADD") refuseSpecial(source, instruction);
    const path = source.replace(/^\/+/, "");
    steps.push({ type: "COPY", args: [path === "" ? "." : path, destination, owner, mode] });
  }
}

function copied(instruction: Instruction, text: InstructionText): readonly string[] {
  const words = text.content.split(/\s+/).filter(Boolean);
  return jsonWords(text) ?? words.map((word) => valueIn(word, instruction));
}

const ONE_IMAGE =
  "--from is not supported, because a template is made from one image: COPY the files from the folder, make them with RUN, or build the " +
  "image with Docker and upload it";

/** What is in the file: the text with its variables, unless its word is quoted. */
function contentOf(written: Text, instruction: Instruction, variables: ReadonlyMap<string, string>): string {
  const { name, text, hasVariables } = written;
  if (!hasVariables) return text;
  const wayOut = `ARG and ENV set one, and <<'${name}' keeps the text as it is`;
  return known(valueInText(written, instruction), instruction, variables, wayOut);
}

/** What ADD fetches or unpacks in Docker. Archives are known by their names. */
function refuseSpecial(source: string, instruction: Instruction): void {
  if (/^[a-z][a-z0-9+.-]*:\/\/|^git@|\.(tar(\.\w+)?|tgz|tbz2?|txz)$/i.test(source))
    throw refused(instruction, `ADD of '${source}' is not supported: RUN curl, or COPY and RUN tar -x`);
}

/** The mode as the platform takes it; empty: as in the folder. */
function modeOf(mode: string, instruction: Instruction): string {
  if (mode === "") return "";
  const given = /^[0-7]+$/.test(mode) ? mode.padStart(3, "0") : mode;
  if (!isFileMode(given)) throw refused(instruction, `--chmod takes a mode such as 755 or u+x, not '${mode}'`);
  return given;
}
