/**
 * The program that makes the test internet of an instance and removes it when its input ends, which also happens when its
 * parent is killed. Prints "ready". It runs as root and holds the lock of `plan.ts`.
 */

import { spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { makeAuthority } from "./certificates.ts";
import { makeNamespace, removeNamespace } from "./namespace.ts";
import { internetPlan } from "./plan.ts";

const plan = internetPlan(process.argv[2] ?? "");
const ended = new Promise<void>((resolve) => {
  process.stdin.on("end", resolve).resume();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
});

await rm(plan.directory, { recursive: true, force: true });
await mkdir(plan.directory, { recursive: true, mode: 0o700 });
await makeAuthority(plan.authorityDirectory);
let status = 0;
try {
  await makeNamespace(plan);
  const program = new URL("servers.ts", import.meta.url).pathname;
  const servers = spawn(
    "nsenter",
    [`--net=/run/netns/${plan.namespace}`, process.execPath, "--import", "tsx", program, plan.instance],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  const exited = new Promise<void>((resolve) => {
    servers.on("exit", () => resolve());
  });
  createInterface({ input: servers.stdout }).on("line", (line) => process.stdout.write(`${line}\n`));
  const first = await Promise.race([ended.then(() => "ended"), exited.then(() => "exited")]);
  if (first === "exited") status = 1;
  servers.stdin.end();
  await exited;
} finally {
  await removeNamespace(plan);
  await rm(plan.directory, { recursive: true, force: true });
}
process.exit(status);
