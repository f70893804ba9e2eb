/** Converts the steps of a build from the clients' form to the nodes' form. Pure. */

import type { BuildBody, BuildStep } from "../../shared/agent-api/build-shapes.ts";
import { isFileMode } from "../../shared/dockerfile/file-mode.ts";
import { AppError } from "../../shared/http/errors.ts";

/** Other fields of a client's step (`forceUpload`, `gzip`, …) are ignored. */
export interface WireStep {
  readonly type: string;
  readonly args?: readonly string[];
  readonly filesHash?: string;
  readonly force?: boolean;
}

/** @throws {AppError} bad_request, which names the step and its fault. */
export function readSteps(steps: readonly WireStep[]): BuildStep[] {
  return steps.map((step, index) => readStep(step, index + 1));
}

/** Hashes of the archives that a build needs. */
export function filesOf(from: BuildBody["from"], steps: readonly BuildStep[]): string[] {
  const image = from.is === "archive" ? [from.filesHash] : [];
  return [...new Set([...image, ...steps.flatMap((step) => (step.type === "COPY" ? [step.filesHash] : []))])];
}

interface StepReader {
  readonly args: readonly string[];
  readonly filesHash: string | undefined;
  readonly step: { readonly number: number; readonly force: boolean };
  readonly wrong: (reason: string) => AppError;
  /** Throws when the number of arguments is wrong. */
  readonly count: (least: number, most: number) => void;
  readonly filled: (what: string, value: string) => string;
}

function readStep({ type, args = [], filesHash, force = false }: WireStep, number: number): BuildStep {
  const wrong = (reason: string) => new AppError("bad_request", `step ${number} (${type}): ${reason}`);
  const ask: StepReader = {
    args,
    filesHash,
    step: { number, force },
    wrong,
    count(least, most) {
      if (args.length >= least && args.length <= most) return;
      const wanted = least === most ? String(least) : `${least} to ${most}`;
      throw wrong(`${wanted} argument(s) expected, not ${args.length}`);
    },
    filled(what, value) {
      if (value.trim() === "") throw wrong(`${what} is empty`);
      return value;
    },
  };
  const read = Object.hasOwn(readers, type) ? readers[type as BuildStep["type"]] : undefined;
  if (read === undefined) throw new AppError("bad_request", `step ${number}: unknown type '${type.slice(0, 64)}'`);
  if (args.some((arg) => arg.includes("\0"))) throw wrong("an argument contains a NUL character");
  return read(ask);
}

const readers: Readonly<Record<BuildStep["type"], (ask: StepReader) => BuildStep>> = {
  RUN({ args: [command = "", user = ""], step, count, filled }) {
    count(1, 2);
    return { ...step, type: "RUN", command: filled("the command", command), ...(user === "" ? {} : { user }) };
  },

  COPY({ args: [source = "", destination = "", user = "", mode = ""], filesHash, step, ...ask }) {
    ask.count(2, 4);
    if (filesHash === undefined) throw ask.wrong("field 'filesHash' is required");
    if (mode !== "" && !isFileMode(mode))
      throw ask.wrong(`'${mode.slice(0, 16)}' is not a file mode, such as 755 or u+x`);
    return {
      ...step,
      type: "COPY",
      source: ask.filled("the source", source),
      destination: ask.filled("the destination", destination),
      ...(user === "" ? {} : { user }),
      ...(mode === "" ? {} : { mode }),
      filesHash,
    };
  },

  ENV({ args, step, wrong, filled }) {
    if (args.length === 0 || args.length % 2 !== 0) throw wrong("names and values expected in pairs");
    const variables = Array.from({ length: args.length / 2 }, (_, pair): [string, string] => {
      const name = filled("a name", args[pair * 2] ?? "");
      if (name.includes("=")) throw wrong(`'${name.slice(0, 64)}' is not the name of a variable`);
      return [name, args[pair * 2 + 1] ?? ""];
    });
    return { ...step, type: "ENV", variables };
  },

  WORKDIR({ args: [path = ""], step, count, filled }) {
    count(1, 1);
    return { ...step, type: "WORKDIR", path: filled("the path", path) };
  },

  USER({ args: [user = ""], step, count, filled }) {
    count(1, 1);
    return { ...step, type: "USER", user: filled("the user", user) };
  },
};
