/** Starts the worker of JavaScript or TypeScript. */

import type { Duplex, Readable } from "node:stream";
import { type Kernel, type Launch, onceReady } from "../kernel.ts";
import { KernelProcess } from "../process.ts";
import { LineKernel } from "./line-kernel.ts";

/** The worker stops at once what it can stop; anything else ends with it. */
const GRACE_MS = 2_000;
/** The worker's own `import` function is new in Node, which is no concern of who runs code. */
const FLAGS = ["--disable-warning=ExperimentalWarning"];
/** Packages that were installed with `npm install -g`. */
const GLOBAL_PACKAGES = "/usr/local/lib/node_modules";

/** @param node the program that runs the worker, @param worker path of the worker */
export async function startJavaScript(
  { node, worker, language }: { readonly node: string; readonly worker: string; readonly language: string },
  { cwd, environment }: Launch,
): Promise<Kernel> {
  const process = new KernelProcess([node, ...FLAGS, worker, language], {
    cwd,
    environment: { NODE_PATH: GLOBAL_PACKAGES, ...environment },
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
    keepsErrors: false,
  });
  const { stdout, stderr, stdio } = process.child;
  const kernel = new LineKernel({
    process,
    environment,
    commands: stdio[3] as Duplex,
    events: stdio[4] as Readable,
    prints: [
      { stream: "stdout", from: stdout as Readable },
      { stream: "stderr", from: stderr as Readable },
    ],
    graceMs: GRACE_MS,
    runLine: (code) => `${JSON.stringify({ run: code })}\n`,
    changeLine: (change) => `${JSON.stringify({ change })}\n`,
  });
  return onceReady(kernel);
}
