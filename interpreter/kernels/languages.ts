/** The languages of the server: which program each one needs, and how its kernels start. */

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { startJupyterKernel } from "./jupyter/jupyter-kernel.ts";
import { python, r } from "./jupyter/languages.ts";
import type { Launch, StartKernel } from "./kernel.ts";
import { startBash } from "./workers/bash/bash-kernel.ts";
import { startJava } from "./workers/java-kernel.ts";
import { startJavaScript } from "./workers/javascript-kernel.ts";

export interface Language {
  /** @throws Error that names the program and the package when they are not installed */
  readonly start: StartKernel;
  /** Its kernel starts with the first run instead of with the context. */
  readonly startsLate: boolean;
  /** A working directory that does not exist is an error; otherwise the kernel starts in the home directory. */
  readonly needsDirectory: boolean;
}

export interface Programs {
  readonly node: string;
  /** The worker of JavaScript, a file. */
  readonly javascript: string;
  /** The worker of Java, a source file. */
  readonly java: string;
  /** The folder with ipykernel's launcher. */
  readonly pythonFolder: string;
  /** PATH. */
  readonly path: string;
}

/** The packages are Debian's. */
const PACKAGES: Readonly<Record<string, string>> = {
  python3: "python3-ipykernel",
  bash: "bash",
  script: "bsdutils",
  java: "openjdk-17-jre-headless",
  R: "r-base-core and r-cran-irkernel",
};

export function languages({ node, javascript, java, pythonFolder, path }: Programs): Map<string, Language> {
  const script = (language: string): Language => ({
    start: (launch) => startJavaScript({ node, worker: javascript, language }, launch),
    startsLate: true,
    needsDirectory: true,
  });
  /** Looks for the programs at each start: they can be installed while the server runs. */
  const needing =
    (programs: readonly string[], start: StartKernel): StartKernel =>
    async (launch: Launch) => {
      for (const program of programs) {
        if (!isInstalled(program, path))
          throw new Error(`the program ${program} is missing: install the package ${PACKAGES[program] ?? program}`);
      }
      return start(launch);
    };
  return new Map<string, Language>([
    [
      "python",
      {
        start: needing(["python3"], (launch) => startJupyterKernel(python("python3", pythonFolder), launch)),
        startsLate: false,
        needsDirectory: false,
      },
    ],
    ["javascript", script("javascript")],
    ["typescript", script("typescript")],
    ["bash", { start: needing(["bash", "script"], startBash), startsLate: false, needsDirectory: true }],
    [
      "java",
      {
        start: needing(["java"], (launch) => startJava(java, launch)),
        startsLate: false,
        needsDirectory: true,
      },
    ],
    [
      "r",
      {
        start: needing(["R"], (launch) => startJupyterKernel(r("R"), launch)),
        startsLate: false,
        needsDirectory: true,
      },
    ],
  ]);
}

function isInstalled(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
