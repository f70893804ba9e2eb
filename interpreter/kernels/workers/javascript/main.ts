/** The worker of JavaScript and TypeScript: one process for each context. Descriptor 3 has commands, 4 takes events. */

import { dirname } from "node:path";
import type { Changes } from "../../kernel.ts";
import { Channel, readLines } from "./channel.ts";
import { defineGlobals } from "./globals.ts";
import { randomNumbers } from "./random.ts";
import { Runner } from "./runner.ts";

const COMMANDS = 3;
const EVENTS = 4;
/** As of a program that SIGINT ended. */
const INTERRUPTED = 130;

type Command = { readonly run: string } | { readonly change: Changes };

const [, program = "", language = "javascript"] = process.argv;
const channel = new Channel(EVENTS);
const reseed = randomNumbers(dirname(program));
const runner = new Runner(language, channel);

channel.takeOver(process.stdout, "stdout");
channel.takeOver(process.stderr, "stderr");
defineGlobals(process.cwd(), (bundle, main) => channel.send(["result", main, bundle]));
process.on("uncaughtException", (error) => runner.uncaught(error));
process.on("unhandledRejection", (error) => runner.uncaught(error));
// A script that is computing is stopped by its own watchdog. What waits for a promise cannot be stopped alone.
process.on("SIGINT", () => {
  if (runner.isWaiting) process.exit(INTERRUPTED);
});

function change({ set, remove, cwd, reseed: again }: Changes): void {
  try {
    Object.assign(process.env, set);
    for (const name of remove) delete process.env[name];
    if (cwd !== null) process.chdir(cwd);
    if (again) reseed();
    channel.send(["changed", null]);
  } catch (error) {
    channel.send(["changed", error instanceof Error ? error.message : "unknown reason"]);
  }
}

const take = (line: string) => {
  const command = JSON.parse(line) as Command;
  if ("run" in command) void runner.run(command.run);
  else change(command.change);
};
readLines(COMMANDS, take, () => process.exit(0));
channel.send(["ready"]);
