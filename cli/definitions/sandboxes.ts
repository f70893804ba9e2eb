/** Commands about sandboxes. */

import type { Argument, Command, Option } from "../definition.ts";

const SANDBOX: Argument = { name: "<sandbox>", about: "id of the sandbox" };
const SANDBOXES: Argument = { name: "[sandbox...]", about: "ids of sandboxes; none with -l" };
const SELECTOR: Option = {
  flags: "-l, --selector <key=value>",
  about: "only those with this metadata",
  read: "labels",
};
export const PROJECT: Option = { flags: "--project <id>", about: "as an operator, of this project" };
const USER: Option = { flags: "-u, --user <name>", about: "as this user of the sandbox" };
const TIMEOUT: Option = {
  flags: "-t, --timeout <duration>",
  about: "time from now until it expires, such as 90s, 5m or 2h",
  read: "duration",
};
const noMemory = (about: string): Option => ({ flags: "--no-memory", about });

/** Of one that runs again, and of copies. */
const AGAIN: Option = { ...TIMEOUT, about: "time until it ends, such as 90s, 5m or 2h (5m)" };

const life = () => import("../commands/sandboxes/sandboxes.ts");
const states = () => import("../commands/sandboxes/states.ts");
const looks = () => import("../commands/sandboxes/looks.ts");

export const sandboxCommands: readonly Command[] = [
  {
    name: "sandbox create",
    about: "start a sandbox, and print its id",
    more: "It ends after its timeout, and its disk with it; `sandbox timeout` sets another end, and --auto-pause stores it in place of that.",
    arguments: [{ name: "[template]", about: "template or snapshot, with an optional :tag (base)" }],
    options: [
      { ...TIMEOUT, about: "time until it ends, such as 90s, 5m or 2h (5m)" },
      { flags: "-e, --env <name=value>", about: "environment of its programs; may be repeated", read: "pairs" },
      { flags: "-m, --metadata <key=value>", about: "metadata, for lists; may be repeated", read: "pairs" },
      { flags: "--cpu <cores>", about: "processors, in place of the template's", read: "integer" },
      { flags: "--memory-size <MiB>", about: "memory, in place of the template's", read: "integer" },
      { flags: "--count <number>", about: "so many sandboxes with one call", read: "integer" },
      { flags: "--auto-pause", about: "store it with its memory when its time is over, in place of its end" },
      { flags: "--no-internet", about: "without access to the internet" },
      { flags: "--volume <name=path>", about: "mounts a volume; may be repeated", read: "pairs" },
      noMemory("of a snapshot the disk alone: its programs start anew"),
      PROJECT,
      { flags: "-o, --output <form>", about: "how it is shown", choices: ["json", "yaml", "name"] },
    ],
    example: "svc sandbox create base --timeout 10m --metadata team=blue",
    load: async () => (await life()).create,
  },
  {
    name: "sandbox list",
    about: "list sandboxes, the newest first",
    options: [
      SELECTOR,
      { flags: "--state <states>", about: "running, paused or ended, several with commas (running,paused)" },
      { flags: "--template <name>", about: "only those of this template" },
      { flags: "--limit <number>", about: "at most so many", read: "integer" },
      PROJECT,
    ],
    shows: "list",
    example: "svc sandbox list -l team=blue -o wide",
    load: async () => (await life()).list,
  },
  {
    name: "sandbox info",
    about: "show one sandbox, also one that has ended",
    arguments: [SANDBOX],
    options: [PROJECT],
    shows: "one",
    example: "svc sandbox info isb6f3b4nz -o yaml",
    load: async () => (await life()).info,
  },
  {
    name: "sandbox connect",
    about: "open a terminal in a sandbox",
    more: "After a cut of the connection the terminal goes on with the same shell. `~.` at the beginning of a line leaves it and prints its process id, by which `--pid` comes back to it. A paused sandbox is resumed first.",
    arguments: [SANDBOX],
    options: [
      USER,
      { flags: "--cwd <path>", about: "where the shell begins" },
      { flags: "--pid <number>", about: "a shell that runs there already", read: "integer" },
    ],
    example: "svc sandbox connect isb6f3b4nz",
    load: async () => (await import("../commands/sandboxes/terminal.ts")).connect,
  },
  {
    name: "sandbox exec",
    about: "run a program in a sandbox, with its input, output and exit code",
    more: "Standard input is passed on where it is a pipe or a file. The program is started without a shell: `-- sh -c '…'` starts one. What follows the program is its own, also without `--`. A paused sandbox is resumed first.",
    arguments: [SANDBOX, { name: "<command...>", about: "after --, the program and its arguments" }],
    options: [
      USER,
      { flags: "--cwd <path>", about: "where the program begins" },
      { flags: "-e, --env <name=value>", about: "environment of the program; may be repeated", read: "pairs" },
      { flags: "-d, --detach", about: "leave it running, and print its process id" },
      { flags: "-t, --timeout <duration>", about: "end it after this time, with exit code 124", read: "duration" },
    ],
    runs: true,
    example: "svc sandbox exec isb6f3b4nz -- python3 -c 'print(6 * 7)'",
    load: async () => (await import("../commands/sandboxes/exec.ts")).exec,
  },
  {
    name: "sandbox cp",
    about: "copy a file or folder into a sandbox, or out of it",
    more: "One of the two is SANDBOX:PATH. A folder is copied into one that is there, and otherwise under the new name; of `dir/.` the content is copied. Links are not copied. A file that is copied here is there when all of it has come: a copy that is cut leaves whole files, and no half of one.",
    arguments: [
      { name: "<from>", about: "path here, or SANDBOX:PATH" },
      { name: "<to>", about: "SANDBOX:PATH, or path here" },
    ],
    options: [USER],
    example: "svc sandbox cp ./app isb6f3b4nz:/home/user/app",
    load: async () => (await import("../commands/sandboxes/copy.ts")).copy,
  },
  {
    name: "sandbox logs",
    about: "show the log of a sandbox, oldest first",
    arguments: [SANDBOX],
    options: [
      { flags: "-f, --follow", about: "goes on with new lines, until the sandbox has ended" },
      { flags: "--level <level>", about: "this level and above", choices: ["debug", "info", "warn", "error"] },
      { flags: "--search <text>", about: "only lines with this text" },
      { flags: "--limit <number>", about: "so many of the newest lines, at most 1000 (1000)", read: "integer" },
      PROJECT,
      { flags: "-o, --output <form>", about: "how it is shown", choices: ["json", "yaml"] },
    ],
    example: "svc sandbox logs isb6f3b4nz -f --level warn",
    load: async () => (await looks()).logs,
  },
  {
    name: "sandbox metrics",
    about: "show what a sandbox uses of processors, memory and disk",
    arguments: [SANDBOX],
    options: [{ flags: "--since <duration>", about: "the time before now (5m)", read: "duration" }, PROJECT],
    shows: "list",
    example: "svc sandbox metrics isb6f3b4nz --since 1h",
    load: async () => (await looks()).metrics,
  },
  {
    name: "sandbox pause",
    about: "store a sandbox with its memory, and stop it",
    arguments: [SANDBOXES],
    options: [
      { ...SELECTOR, about: "the running ones with this metadata" },
      noMemory("its disk alone: its programs end"),
      PROJECT,
    ],
    example: "svc sandbox pause isb6f3b4nz",
    load: async () => (await states()).pause,
  },
  {
    name: "sandbox resume",
    about: "start a paused sandbox where it was",
    arguments: [SANDBOXES],
    options: [
      { ...SELECTOR, about: "the paused ones with this metadata" },
      AGAIN,
      noMemory("boots from its disk: its programs start anew"),
      PROJECT,
    ],
    example: "svc sandbox resume isb6f3b4nz --timeout 1h",
    load: async () => (await states()).resume,
  },
  {
    name: "sandbox fork",
    about: "start copies of a running sandbox, and print their ids",
    arguments: [SANDBOX],
    options: [
      { flags: "--count <number>", about: "so many copies (1)", read: "integer" },
      AGAIN,
      noMemory("the copies boot from the disk"),
      PROJECT,
      { flags: "-o, --output <form>", about: "how they are shown", choices: ["json", "yaml", "name"] },
    ],
    example: "svc sandbox fork isb6f3b4nz --count 3",
    load: async () => (await states()).fork,
  },
  {
    name: "sandbox rewind",
    about: "put a sandbox back to a snapshot of it; a paused one runs afterwards",
    arguments: [SANDBOX, { name: "<snapshot>", about: "name or id of a snapshot" }],
    options: [
      { ...TIMEOUT, about: "time from now until it ends (of a running one its end stays, of a paused one 5m)" },
      noMemory("boots from the disk of the snapshot"),
      PROJECT,
    ],
    example: "svc sandbox rewind isb6f3b4nz before-the-tests",
    load: async () => (await states()).rewind,
  },
  {
    name: "sandbox timeout",
    about: "set when a sandbox expires",
    arguments: [SANDBOX, { name: "<duration>", about: "time from now" }],
    options: [PROJECT],
    example: "svc sandbox timeout isb6f3b4nz 30m",
    load: async () => (await states()).setTimeout,
  },
  {
    name: "sandbox kill",
    about: "end sandboxes",
    arguments: [SANDBOXES],
    options: [SELECTOR, PROJECT],
    example: "svc sandbox kill -l team=blue",
    load: async () => (await states()).kill,
  },
  {
    name: "sandbox url",
    about: "print the address of a port of a sandbox",
    arguments: [SANDBOX, { name: "<port>", about: "where a server in the sandbox listens" }],
    example: "svc sandbox url isb6f3b4nz 8000",
    load: async () => (await looks()).url,
  },
  {
    name: "forward",
    about: "serve a port of a sandbox on this machine",
    more: "HTTP and WebSockets pass, with the sandbox's traffic token where it asks for one. It listens on 127.0.0.1 until it is ended.",
    arguments: [
      SANDBOX,
      { name: "<ports...>", about: "LOCAL:REMOTE, or one number for both; LOCAL 0, or :REMOTE, takes a free one" },
    ],
    options: [{ flags: "--host <address>", about: "another address of this machine to listen on" }],
    example: "svc forward isb6f3b4nz 8080:80",
    load: async () => (await import("../commands/sandboxes/forward.ts")).forward,
  },
  {
    name: "mcp",
    about: "serve sandboxes to an agent's host as tools, by the Model Context Protocol over standard input and output",
    more: "The tools create, list, fork, snapshot, rewind and kill sandboxes, run commands and code in them, and read, write and list their files. They see only sandboxes of this server's name, in the project of the key.",
    options: [
      { flags: "--name <name>", about: "its sandboxes have the metadata mcp=NAME (svc)" },
      { flags: "--limit <number>", about: "most sandboxes at a time, paused ones included (5)", read: "integer" },
      { ...TIMEOUT, about: "longest life of a sandbox (1h)" },
    ],
    example: "svc mcp --limit 3 --timeout 30m",
    load: async () => (await import("../commands/mcp.ts")).mcp,
  },
];
