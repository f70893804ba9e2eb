/** Commands about who you are: keys, the current platform, contexts, completion. */

import type { Command } from "../definition.ts";
import { PROJECT } from "./sandboxes.ts";

const keys = () => import("../commands/account/keys.ts");
const contexts = () => import("../commands/account/contexts.ts");

export const accountCommands: readonly Command[] = [
  {
    name: "key list",
    about: "list API keys, masked",
    options: [PROJECT],
    shows: "list",
    example: "svc key list",
    load: async () => (await keys()).list,
  },
  {
    name: "key create",
    about: "create an API key, and print it; it is shown this once",
    arguments: [{ name: "<name>", about: "a name for people" }],
    options: [
      { flags: "--scope <scopes>", about: "what it may do: read, sandboxes, templates, admin (all)", read: "list" },
      { flags: "--expires <duration>", about: "it stops working after this time", read: "duration" },
      PROJECT,
    ],
    example: "svc key create ci --scope sandboxes --expires 90d",
    load: async () => (await keys()).create,
  },
  {
    name: "key delete",
    about: "revoke API keys, at once",
    arguments: [{ name: "<key...>", about: "ids or names of keys" }],
    options: [PROJECT],
    example: "svc key delete ci",
    load: async () => (await keys()).remove,
  },
  {
    name: "auth login",
    about: "ask for an API key, try it, and store it in the current context",
    more: "The key comes from the terminal, which does not show it, from standard input or from a file. ~/.config/svc/config.toml has it, which only you can read.",
    options: [
      { flags: "--api-url <url>", about: "the API, such as http://10.0.0.1:3000" },
      { flags: "--sandbox-url <url>", about: "one address for all sandboxes" },
      { flags: "--domain <name>", about: "in place of both: https://api.NAME and https://PORT-ID.NAME" },
      { flags: "--name <name>", about: "the context that it is stored in (the current one, or default)" },
      { flags: "--key-file <path>", about: "reads the API key from a file, in place of standard input" },
    ],
    example: "svc auth login --domain sbx.example.org",
    load: async () => (await import("../commands/account/login.ts")).login,
  },
  {
    name: "auth whoami",
    about: "show which platform and key a command uses, and whether the key works",
    shows: "one",
    example: "svc auth whoami",
    load: async () => (await keys()).whoami,
  },
  {
    name: "context add",
    about: "store the address of a platform, with a key from the terminal, standard input or a file",
    more: "The context becomes the current one. ~/.config/svc/config.toml has it, which only you can read. Environment variables count more.",
    arguments: [{ name: "<name>", about: "a name for it" }],
    options: [
      { flags: "--api-url <url>", about: "the API, such as http://10.0.0.1:3000" },
      { flags: "--sandbox-url <url>", about: "one address for all sandboxes" },
      { flags: "--domain <name>", about: "in place of both: https://api.NAME and https://PORT-ID.NAME" },
      { flags: "--key-file <path>", about: "reads the API key from a file, in place of standard input" },
      { flags: "--token-file <path>", about: "stores the operators' token of this file too" },
    ],
    example: "svc context add work --api-url http://10.0.0.1:3000 --sandbox-url http://10.0.0.1:3002 < ./key",
    load: async () => (await contexts()).add,
  },
  {
    name: "context list",
    about: "list contexts; the current one has a *",
    shows: "list",
    example: "svc context list",
    load: async () => (await contexts()).list,
  },
  {
    name: "context use",
    about: "make a context the current one",
    arguments: [{ name: "<context>", about: "name of the context, or - for none" }],
    example: "svc context use work",
    load: async () => (await contexts()).use,
  },
  {
    name: "context remove",
    about: "forget a context and its key",
    arguments: [{ name: "<context>", about: "name of the context" }],
    example: "svc context remove work",
    load: async () => (await contexts()).remove,
  },
  {
    name: "completion",
    about: "print what completes commands, flags and ids of sandboxes in a shell",
    arguments: [{ name: "<shell>", about: "bash, zsh or fish" }],
    more: "zsh reads it from a file `_svc` in a folder of `$fpath`, fish from `~/.config/fish/completions/svc.fish`. The package has installed all three.",
    example: "svc completion bash > ~/.local/share/bash-completion/completions/svc",
    load: async () => (await import("../commands/account/completion.ts")).completion,
  },
];
