/** Starts the worker of Java: JShell inside of one JVM, compiled from its source at each start. */

import type { Readable, Writable } from "node:stream";
import { type Changes, type Kernel, type Launch, onceReady } from "../kernel.ts";
import { KernelProcess } from "../process.ts";
import { LineKernel } from "./line-kernel.ts";

const GRACE_MS = 5_000;
/** Small and quick to start: few threads, little compiling, no file of counters. */
const FLAGS = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dfile.encoding=UTF-8"];
const MODULES = ["--add-modules", "jdk.jshell,jdk.unsupported"];

/** @param worker path of Worker.java */
export async function startJava(worker: string, { cwd, environment }: Launch): Promise<Kernel> {
  const process = new KernelProcess(["java", ...FLAGS, ...MODULES, worker], {
    cwd,
    environment,
    stdio: ["pipe", "pipe", "pipe"],
    keepsErrors: true,
  });
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

/** Random numbers need no seed: Java's generators are made when a program asks for them. */
function changeLine({ set, remove }: Changes): string {
  const words = Object.entries(set).map(([name, value]) => `set ${base64(name)} ${base64(value)}`);
  return `${["change", ...words, ...remove.map((name) => `remove ${base64(name)}`)].join(" ")}\n`;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
