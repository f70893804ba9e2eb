/** Commands of operators about the machines of the platform. */

import type { Argument, Command } from "../definition.ts";

const NODE: Argument = { name: "<node>", about: "id of the node" };
const nodes = () => import("../commands/operating/nodes.ts");
const drains = () => import("../commands/operating/drains.ts");

export const nodeCommands: readonly Command[] = [
  {
    name: "node list",
    about: "list nodes",
    options: [
      { flags: "--template <id>", about: "in the order in which a sandbox of it would be placed, with reasons" },
    ],
    shows: "list",
    example: "svc node list -o wide",
    load: async () => (await nodes()).list,
  },
  {
    name: "node info",
    about: "show one node: what it can do, what it holds, what stands in its way, and what happened to it",
    arguments: [NODE],
    shows: "one",
    example: "svc node info n1",
    load: async () => (await nodes()).info,
  },
  {
    name: "node token",
    about: "make a token with which one machine can join, within an hour",
    more: "On that machine: `./scripts/up --join TOKEN https://ORCHESTRATOR:PORT`, for an edge `./scripts/up --edge-only --join …`. On the orchestrator's machine `./scripts/node add` prints that command whole, with address and port.",
    options: [{ flags: "--kind <kind>", about: "what the machine becomes (node)", choices: ["node", "edge"] }],
    example: "svc node token --kind edge",
    load: async () => (await nodes()).token,
  },
  {
    name: "node cordon",
    about: "place no new sandbox on a node; what runs there stays",
    more: "Its status is draining then, as during a drain.",
    arguments: [NODE],
    example: "svc node cordon n1",
    load: async () => (await nodes()).cordon,
  },
  {
    name: "node uncordon",
    about: "take a node back, which also ends its drain",
    arguments: [NODE],
    example: "svc node uncordon n1",
    load: async () => (await nodes()).uncordon,
  },
  {
    name: "node drain",
    about: "move the sandboxes of a node to other nodes, and show how far it is until it is done",
    arguments: [NODE],
    options: [
      { flags: "--deadline <duration>", about: "how long it may take", read: "duration" },
      { flags: "--finish", about: "let running sandboxes end by themselves, in place of moving them" },
      { flags: "--at-deadline <what>", about: "what still runs there then (stay)", choices: ["stay", "kill"] },
      { flags: "--at-once <number>", about: "sandboxes on their way at a time (2)", read: "integer" },
      { flags: "-d, --detach", about: "start it, and do not wait" },
      { flags: "-o, --output <form>", about: "how its end is shown", choices: ["json", "yaml"] },
    ],
    example: "svc node drain n1 --deadline 1h",
    load: async () => (await drains()).drain,
  },
  {
    name: "node remove",
    about: "remove a node from the platform; refused while something is on it",
    arguments: [NODE],
    options: [{ flags: "--force", about: "with what is on it: its sandboxes end, the rest is deleted" }],
    example: "svc node remove n3",
    load: async () => (await nodes()).remove,
  },
];
