/** Every command, in the order of help and docs/cli.md. */

import type { Command, Group } from "../definition.ts";
import { accountCommands } from "./account.ts";
import { machineCommands } from "./machine.ts";
import { nodeCommands } from "./nodes.ts";
import { operatingCommands } from "./operating.ts";
import { projectCommands } from "./projects.ts";
import { sandboxCommands } from "./sandboxes.ts";
import { storedCommands } from "./stored.ts";
import { templateCommands } from "./templates.ts";

export const GROUPS: readonly Group[] = [
  { name: "sandbox", about: "create sandboxes and work in them" },
  { name: "template", about: "build what sandboxes start from" },
  { name: "snapshot", about: "stored states of sandboxes" },
  { name: "volume", about: "disks that outlive sandboxes" },
  { name: "secret", about: "values that sandboxes use and never see" },
  { name: "key", about: "API keys" },
  { name: "auth", about: "who you are to the platform" },
  { name: "context", about: "several platforms" },
  { name: "network", about: "what a sandbox may reach, and what it tried" },
  { name: "webhook", about: "where events are sent to" },
  { name: "node", about: "the machines of the platform (for operators)" },
  { name: "project", about: "projects and their limits (for operators)" },
  { name: "rotate", about: "new keys in place of earlier ones (for root)" },
  { name: "migrate", about: "moves of the platform's records (for root)" },
  { name: "debug", about: "what whoever helps needs to see (for root)" },
];

/** What completion in shells asks. It is here because it knows the others. */
const completeCommand: Command = {
  name: "complete",
  about: "print what may follow the words of a line",
  arguments: [{ name: "[words...]", about: "after --, the words after svc; the last one is not finished" }],
  example: "svc complete -- sandbox li",
  hidden: true,
  load: async () =>
    (await import("../commands/account/completion.ts")).completer({ commands: COMMANDS, groups: GROUPS }),
};

export const COMMANDS: readonly Command[] = [
  ...sandboxCommands,
  ...templateCommands,
  ...storedCommands,
  ...accountCommands,
  ...operatingCommands,
  ...nodeCommands,
  ...projectCommands,
  ...machineCommands,
  completeCommand,
];
