/** Commands about what outlives a sandbox: snapshots, volumes, secrets. */

import type { Command } from "../definition.ts";
import { PROJECT } from "./sandboxes.ts";

const snapshots = () => import("../commands/stored/snapshots.ts");
const volumes = () => import("../commands/stored/volumes.ts");
const secrets = () => import("../commands/stored/secrets.ts");
const secretName = { name: "<secret>", about: "name or id of the secret" };
const metadata = {
  flags: "-m, --metadata <key=value>",
  about: "metadata, in clear; may be repeated",
  read: "pairs",
} as const;
const file = { flags: "--file <path>", about: "reads the value from a file, in place of standard input" };

export const storedCommands: readonly Command[] = [
  {
    name: "snapshot create",
    about: "store the state of a running sandbox, which goes on running",
    arguments: [{ name: "<sandbox>", about: "id of the sandbox" }],
    options: [
      { flags: "--name <name>", about: "a name to start sandboxes from" },
      { flags: "--no-memory", about: "the disk alone" },
      PROJECT,
    ],
    example: "svc snapshot create isb6f3b4nz --name before-upgrade",
    load: async () => (await snapshots()).create,
  },
  {
    name: "snapshot list",
    about: "list snapshots, the newest first",
    options: [
      { flags: "--sandbox <id>", about: "only those of this sandbox" },
      { flags: "--limit <number>", about: "at most so many", read: "integer" },
      PROJECT,
    ],
    shows: "list",
    example: "svc snapshot list --sandbox isb6f3b4nz",
    load: async () => (await snapshots()).list,
  },
  {
    name: "snapshot delete",
    about: "delete snapshots",
    arguments: [{ name: "<snapshot...>", about: "ids or names of snapshots" }],
    options: [PROJECT],
    example: "svc snapshot delete before-upgrade",
    load: async () => (await snapshots()).remove,
  },
  {
    name: "snapshot verify",
    about: "read all that is stored of snapshots, paused sandboxes and templates, and compare it with its digests",
    more: "With the operators' token. Each node reads its own copy, one at a time, and one node reads what is in the blob store. Nothing is changed. Exit code 1: something is damaged, missing or could not be read; the table says where a good copy of each damaged part is, and standard error what is wrong. A disk of a paused sandbox has no digest: it is read to its end. Of a template its image is read. Ctrl-C ends the checks.",
    arguments: [{ name: "[snapshot]", about: "id or name of a snapshot, or id of a paused sandbox or a template" }],
    options: [{ flags: "--all", about: "every snapshot, every paused sandbox and every template" }],
    shows: "table",
    example: "svc snapshot verify --all",
    load: async () => (await import("../commands/stored/verify.ts")).verify,
  },
  {
    name: "volume create",
    about: "create a volume, and print its id",
    arguments: [{ name: "<name>", about: "letters, digits, _ and -" }],
    options: [PROJECT],
    example: "svc volume create data",
    load: async () => (await volumes()).create,
  },
  {
    name: "volume list",
    about: "list volumes",
    options: [PROJECT],
    shows: "list",
    example: "svc volume list",
    load: async () => (await volumes()).list,
  },
  {
    name: "volume ls",
    about: "list what is in a folder of a volume",
    arguments: [
      { name: "<volume>", about: "name or id of the volume" },
      { name: "[path]", about: "folder (/)" },
    ],
    options: [PROJECT],
    shows: "list",
    example: "svc volume ls data /models",
    load: async () => (await volumes()).look,
  },
  {
    name: "volume delete",
    about: "delete volumes that no sandbox and no snapshot mounts",
    arguments: [{ name: "<volume...>", about: "names or ids of volumes" }],
    options: [PROJECT],
    example: "svc volume delete data",
    load: async () => (await volumes()).remove,
  },
  {
    name: "secret create",
    about: "store a secret, whose value comes from standard input or a file",
    arguments: [{ name: "<name>", about: "its name" }],
    options: [file, metadata, PROJECT],
    example: "svc secret create openai --file ./openai.key --metadata owner=blue",
    load: async () => (await secrets()).create,
  },
  {
    name: "secret list",
    about: "list secrets, without their values",
    options: [PROJECT],
    shows: "list",
    example: "svc secret list",
    load: async () => (await secrets()).list,
  },
  {
    name: "secret update",
    about: "give a secret a new value, which running sandboxes use within seconds",
    arguments: [secretName],
    options: [file, metadata, PROJECT],
    example: "svc secret update openai < ./openai.key",
    load: async () => (await secrets()).update,
  },
  {
    name: "secret delete",
    about: "delete secrets; requests that need them fail within seconds",
    arguments: [{ name: "<secret...>", about: "names or ids of secrets" }],
    options: [PROJECT],
    example: "svc secret delete openai",
    load: async () => (await secrets()).remove,
  },
];
