/** Commands about what happens: the platform's state, events, the network, one sandbox in depth, audit, webhooks. */

import type { Argument, Command } from "../definition.ts";
import { PROJECT } from "./sandboxes.ts";

const SANDBOX: Argument = { name: "<sandbox>", about: "id of the sandbox" };
const WEBHOOK: Argument = { name: "<webhook>", about: "name or id of the webhook" };
const LIMIT = { flags: "--limit <number>", about: "at most so many (100)", read: "integer" } as const;
const overview = () => import("../commands/operating/overview.ts");
const network = () => import("../commands/sandboxes/network.ts");
const webhooks = () => import("../commands/operating/webhooks.ts");

export const operatingCommands: readonly Command[] = [
  {
    name: "status",
    about: "show whether the platform serves, its versions, its nodes and what runs",
    more: "Nodes and counts of all projects need the operators' token. Exit code 1: the platform is not ready.",
    options: [{ flags: "-o, --output <form>", about: "how it is shown", choices: ["json", "yaml"] }],
    example: "svc status",
    load: async () => (await overview()).status,
  },
  {
    name: "upgrade",
    about: "say what an upgrade of the platform to this command's version would do; it changes nothing",
    more: "For operators. It compares what orchestrators and nodes run with this version: what would be refused (exit code 1), what to look at first, and in which order to upgrade.",
    options: [{ flags: "--check", about: "only says so; there is no upgrade without it" }],
    shows: "one",
    example: "svc upgrade --check",
    load: async () => (await import("../commands/operating/upgrade.ts")).upgrade,
  },
  {
    name: "top",
    about: "list running sandboxes by the processor time that they use",
    options: [PROJECT],
    shows: "list",
    example: "svc top",
    load: async () => (await overview()).top,
  },
  {
    name: "explain",
    about: "tell the state of a sandbox, why, since when, where, what ends it next, and its last events",
    arguments: [SANDBOX],
    options: [PROJECT, { flags: "-o, --output <form>", about: "how it is shown", choices: ["json", "yaml"] }],
    example: "svc explain isb6f3b4nz",
    load: async () => (await import("../commands/sandboxes/explain.ts")).explain,
  },
  {
    name: "events",
    about: "list events of the project, the oldest of them first",
    options: [
      { flags: "-f, --follow", about: "goes on with new events; after a cut none is missing" },
      { flags: "--sandbox <id>", about: "only those of this sandbox" },
      { flags: "--type <types>", about: "killed, paused, …, or the whole name; several with commas" },
      { flags: "--since <duration>", about: "the time before now", read: "duration" },
      LIMIT,
      PROJECT,
      {
        flags: "-o, --output <form>",
        about: "how they are shown; json is one object a line",
        choices: ["json", "wide"],
      },
      { flags: "--no-headers", about: "without the line of titles" },
    ],
    example: "svc events -f --type killed,paused",
    load: async () => (await import("../commands/operating/events.ts")).events,
  },
  {
    name: "network check",
    about: "tell whether a running sandbox may open a connection, and which rule says so",
    more: "Exit code 1: it may not.",
    arguments: [SANDBOX, { name: "<destination>", about: "host or address, with an optional :port (443)" }],
    options: [{ flags: "--udp", about: "for UDP, in place of TCP" }, PROJECT],
    shows: "one",
    example: "svc network check isb6f3b4nz pypi.org:443",
    load: async () => (await network()).check,
  },
  {
    name: "network log",
    about: "list what a sandbox has tried to reach, and what was decided",
    arguments: [SANDBOX],
    options: [LIMIT, PROJECT],
    shows: "list",
    example: "svc network log isb6f3b4nz -o wide",
    load: async () => (await network()).log,
  },
  {
    name: "usage",
    about: "show the limits of a project and what it uses of them",
    options: [PROJECT],
    shows: "list",
    example: "svc usage",
    load: async () => (await import("../commands/operating/usage.ts")).limits,
  },
  {
    name: "webhook list",
    about: "list webhooks",
    options: [PROJECT],
    shows: "list",
    example: "svc webhook list",
    load: async () => (await webhooks()).list,
  },
  {
    name: "webhook create",
    about: "send events to an address; the secret of the signatures comes from standard input or a file",
    arguments: [
      { name: "<name>", about: "a name for people" },
      { name: "<url>", about: "where events are sent to" },
    ],
    options: [
      { flags: "--event <types>", about: "killed, paused, …, or whole names (all of a sandbox's life)", read: "list" },
      { flags: "--secret-file <path>", about: "reads the secret from a file" },
      PROJECT,
    ],
    example: "svc webhook create ops https://ops.example.org/hook --event killed --secret-file ./hook.secret",
    load: async () => (await webhooks()).create,
  },
  {
    name: "webhook deliveries",
    about: "list the deliveries of a webhook, the newest first",
    arguments: [WEBHOOK],
    options: [
      { flags: "--state <status>", about: "only these", choices: ["pending", "delivered", "failed"] },
      LIMIT,
      PROJECT,
    ],
    shows: "list",
    example: "svc webhook deliveries ops --state failed",
    load: async () => (await webhooks()).deliveries,
  },
  {
    name: "webhook test",
    about: "send an event of the type webhook.test, once",
    arguments: [WEBHOOK],
    options: [PROJECT],
    example: "svc webhook test ops",
    load: async () => (await webhooks()).test,
  },
  {
    name: "webhook set",
    about: "enable or disable a webhook",
    arguments: [WEBHOOK],
    options: [{ flags: "--enable", about: "it gets events" }, { flags: "--disable", about: "it gets none" }, PROJECT],
    example: "svc webhook set ops --disable",
    load: async () => (await webhooks()).set,
  },
  {
    name: "webhook redeliver",
    about: "send the event of a delivery again, once",
    arguments: [WEBHOOK, { name: "<delivery>", about: "id of the delivery" }],
    options: [PROJECT],
    example: "svc webhook redeliver ops 0b6f2d6e-6f2b-4c0e-9a53-5a1f0a6d6c11",
    load: async () => (await webhooks()).redeliver,
  },
  {
    name: "webhook delete",
    about: "delete webhooks and their deliveries",
    arguments: [{ name: "<webhook...>", about: "names or ids of webhooks" }],
    options: [PROJECT],
    example: "svc webhook delete ops",
    load: async () => (await webhooks()).remove,
  },
  {
    name: "audit",
    about: "list who changed what, the newest first",
    options: [
      { flags: "--admin", about: "of the whole platform, as an operator" },
      { flags: "--action <name>", about: "only this action" },
      { flags: "--actor <id>", about: "only this API key or node" },
      { flags: "--since <duration>", about: "the time before now", read: "duration" },
      LIMIT,
      PROJECT,
    ],
    shows: "list",
    example: "svc audit --action createKey --since 7d",
    load: async () => (await import("../commands/operating/audit.ts")).list,
  },
  {
    name: "gc",
    about: "remove builds and uploaded files that nothing needs, and list what nodes will remove",
    more: "For operators. A node deletes by itself what no record names, when it is old enough; volumes are for an operator to decide.",
    options: [{ flags: "--dry-run", about: "removes nothing, and lists all of it" }],
    shows: "table",
    example: "svc gc --dry-run",
    load: async () => (await import("../commands/operating/garbage.ts")).collect,
  },
];
