/** Starts the worker of Java: JShell inside of one JVM, compiled from its source at each start. */

import type { Readable, Writable } from "node:stream";
import { type Changes, type Kernel, type Launch, onceReady } from "../kernel.ts";
import { KernelProcess } from "../process.ts";
import { LineKernel } from "./line-kernel.ts";

const GRACE_MS = 5_000;
/** Small and quick to start: few threads, little compiling, no file of counters. */
const FLAGS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dfile.encoding=UTF-8"];
const MODULES = ["--add-modules", "jdk.jshell,jdk.unsupported"];
/** Where the worker seeds generators that programs cannot reach. */
const OPEN = ["java.base/java.lang", "java.base/java.util", "java.base/java.util.concurrent", "jdk.random/jdk.random"];

/** @param worker path of Worker.java */
export async function startJava(worker: string, { cwd, environment }: Launch): Promise<Kernel> {
  const process = new KernelProcess(
    ["java", ...FLAGS, ...MODULES, ...OPEN.flatMap((name) => ["--add-opens", `${name}=ALL-UNNAMED`]), worker],
    {
      cwd,
      environment,
      stdio: ["pipe", "pipe", "pipe"],
      keepsErrors: true,
    },
  );
  const kernel = new LineKernel({
    process,
    // Variables are system properties there, of which none is set at the start.
    environment: {},
    commands: process.child.stdin as Writable,
    events: process.child.stdout as Readable,
    prints: [],
    graceMs: GRACE_MS,
    runLine: (code) => `run ${base64(code)}\n`,
    changeLine,
  });
  return onceReady(kernel);
}

function changeLine({ set, remove, reseed }: Changes): string {
  const words = Object.entries(set).map(([name, value]) => `set ${base64(name)} ${base64(value)}`);
  const seeding = reseed ? ["reseed"] : [];
  return `${["change", ...words, ...remove.map((name) => `remove ${base64(name)}`), ...seeding].join(" ")}\n`;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
