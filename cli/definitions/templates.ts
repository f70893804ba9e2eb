/** Commands about templates. */

import type { Argument, Command } from "../definition.ts";
import { PROJECT } from "./sandboxes.ts";

const TEMPLATE: Argument = { name: "<template>", about: "name or id of the template" };
const templates = () => import("../commands/stored/templates.ts");
const build = () => import("../commands/stored/builds.ts");

export const templateCommands: readonly Command[] = [
  {
    name: "template list",
    about: "list templates",
    options: [PROJECT],
    shows: "list",
    example: "svc template list -o wide",
    load: async () => (await templates()).list,
  },
  {
    name: "template info",
    about: "list the builds of a template, the newest first",
    arguments: [TEMPLATE],
    options: [PROJECT],
    shows: "list",
    example: "svc template info my-app",
    load: async () => (await templates()).builds,
  },
  {
    name: "template build",
    about: "build a template from a Dockerfile, with its log, and print its id",
    more: "FROM names an image, or a template. CMD and ENTRYPOINT become the start command, which is stored running. What a build cannot do is refused with its line.",
    arguments: [
      { name: "<name>", about: "name of the template, with an optional :tag" },
      { name: "[folder]", about: "folder with a Dockerfile, or the Dockerfile (.)" },
    ],
    options: [
      { flags: "-f, --file <path>", about: "another Dockerfile than the folder's; - for standard input" },
      {
        flags: "--build-arg <name=value>",
        about: "value of an ARG, without =value that of the environment; may be repeated",
        read: "variables",
      },
      { flags: "--target <stage>", about: "the stage of the Dockerfile to build, in place of the last one" },
      { flags: "--cpu <cores>", about: "processors of its sandboxes", read: "integer" },
      { flags: "--memory-size <MiB>", about: "memory of its sandboxes", read: "integer" },
      { flags: "--start <command>", about: "start command, in place of the Dockerfile's" },
      { flags: "--ready <command>", about: "the start is done when this succeeds" },
      { flags: "--force", about: "runs every step again" },
      PROJECT,
    ],
    example: "svc template build my-app ./app --memory-size 2048",
    load: async () => (await build()).build,
  },
  {
    name: "template logs",
    about: "show the log of a build, the newest one of the template if none is named",
    arguments: [TEMPLATE, { name: "[build]", about: "id of the build" }],
    options: [{ flags: "-f, --follow", about: "goes on until the build ends" }, PROJECT],
    example: "svc template logs my-app -f",
    load: async () => (await build()).logs,
  },
  {
    name: "template tag",
    about: "put tags on a build of a template",
    arguments: [
      { name: "<template>", about: "name[:tag] of the build" },
      { name: "<tag...>", about: "the new tags" },
    ],
    options: [PROJECT],
    example: "svc template tag my-app:v2 stable",
    load: async () => (await templates()).tag,
  },
  {
    name: "template tags",
    about: "list the tags of a template",
    arguments: [TEMPLATE],
    options: [PROJECT],
    shows: "list",
    example: "svc template tags my-app",
    load: async () => (await templates()).tags,
  },
  {
    name: "template warm",
    about: "keep containers of a template warm, so many at least on all nodes together",
    arguments: [
      TEMPLATE,
      { name: "[count]", about: "0 for none; left out: what the demand of the last hour asks for" },
    ],
    options: [PROJECT],
    example: "svc template warm my-app 10",
    load: async () => (await templates()).warm,
  },
  {
    name: "template delete",
    about: "delete templates, or tags of them",
    arguments: [{ name: "<template...>", about: "names or ids, with a :tag for this tag alone" }],
    options: [PROJECT],
    example: "svc template delete my-app:v1",
    load: async () => (await templates()).remove,
  },
];
