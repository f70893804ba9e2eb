/** Commands of operators about projects. */

import type { Argument, Command } from "../definition.ts";

const NAMED: Argument = { name: "<project>", about: "prj_ id, or UUID" };
const projects = () => import("../commands/operating/projects.ts");

export const projectCommands: readonly Command[] = [
  {
    name: "project list",
    about: "list projects",
    shows: "list",
    example: "svc project list",
    load: async () => (await projects()).list,
  },
  {
    name: "project create",
    about: "create a project, and print its id",
    more: "`svc key create NAME --project ID` makes the first key of it.",
    arguments: [{ name: "<name>", about: "a name for people" }],
    example: "svc project create team-blue",
    load: async () => (await projects()).create,
  },
  {
    name: "project limit",
    about: "set limits of a project; `default` gives one back to the platform",
    arguments: [NAMED],
    options: [
      {
        flags: "--limits <name=value>",
        about: "sandboxes, startsPerMinute, totalCPU, … as `svc usage` names them; may be repeated",
        read: "pairs",
      },
    ],
    example: "svc project limit prj_9f2c --limits sandboxes=20 --limits totalCPU=default",
    load: async () => (await projects()).limit,
  },
  {
    name: "project disable",
    about: "let a project only read and delete; its running sandboxes stay",
    arguments: [NAMED],
    options: [{ flags: "--reason <text>", about: "shown to its callers" }],
    example: "svc project disable prj_9f2c --reason 'unpaid since May'",
    load: async () => (await projects()).disable,
  },
  {
    name: "project enable",
    about: "take a disabled or banned project back",
    arguments: [NAMED],
    example: "svc project enable prj_9f2c",
    load: async () => (await projects()).enable,
  },
  {
    name: "project delete",
    about: "end and remove everything of a project, for ever",
    arguments: [NAMED],
    options: [{ flags: "--force", about: "needed, because nothing of it comes back" }],
    example: "svc project delete prj_9f2c --force",
    load: async () => (await projects()).remove,
  },
];
