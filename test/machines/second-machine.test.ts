/**
 * Two machines, each a bare one with its own network, files and Docker daemon, become a platform with the commands of
 * docs/operating/machines.md and no other. Then an operator makes every mistake there is a sentence for, and the sentence comes.
 */

import { existsSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Ended, insist, type Machine, newMachine, removeMachine, type } from "../support/machines/machines.ts";

const FAKE_TIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
/** Longer than a certificate is valid. */
const OFF_H = 100;

/** A machine with two cores that is busy takes a quarter of an hour for the packages and the image of each of the two. */
const SET_UP_MS = 3_600_000;

const SVC = "./scripts/svc";

let first: Machine;
let second: Machine;
let usedToken = "";

beforeAll(async () => {
  if (!existsSync(FAKE_TIME)) throw new Error("this test needs the package libfaketime");
  first = await newMachine("one", "198.51.100.66");
  second = await newMachine("two", "198.51.100.67");
  console.log(await insist(first, "./scripts/up"));
}, SET_UP_MS);
afterAll(async () => {
  for (const machine of [second, first]) {
    if (machine === undefined) continue;
    await type(machine, "./scripts/down --purge");
    await removeMachine(machine);
  }
}, 600_000);

/** The command that `node add` prints for the other machine. */
async function added(): Promise<{ command: string; token: string; url: string }> {
  const said = await insist(first, "./scripts/node add");
  const [command = "", token = "", url = ""] = /\.\/scripts\/up --join (\S+) (\S+)/.exec(said) ?? [];
  expect(url).toBe(`https://${first.address}:3003`);
  return { command, token, url };
}

/** The id that the second machine has. */
async function secondId(): Promise<string> {
  return (await insist(second, "sed -n s/^SVC_NODE_ID=//p /etc/svc/agent.env")).trim();
}

test(
  "a bare machine is a node after two commands, and sandboxes run there",
  async () => {
    const begun = performance.now();
    const { command, token } = await added();
    const joined = await type(second, command);
    usedToken = token;
    console.log(joined.said);
    console.log(`to the second node: 2 commands, ${Math.round((performance.now() - begun) / 1000)} s`);
    // Where it made its own, the reason stands there.
    expect(joined.said).toMatch(/template base .*, taken from the platform \(/);
    expect(joined.said).toContain(`Node ${await secondId()} of https://${first.address}:3003 is ready`);
    // Nothing but the new node takes sandboxes now.
    const own = (await insist(first, `${SVC} node list -o name`)).trim().split("\n");
    // Each line is `node/ID`, which commands take.
    for (const name of own) if (name !== `node/${await secondId()}`) await insist(first, `${SVC} node cordon ${name}`);
    // More than one: containers of both machines have the same addresses, and only some of those of the first one are taken.
    for (let sandboxes = 0; sandboxes < 6; sandboxes++) {
      const sandbox = (await insist(first, `${SVC} sandbox create base`)).trim();
      expect(await insist(first, `${SVC} sandbox exec ${sandbox} -- echo there`)).toContain("there");
      expect(await insist(second, "docker ps --format '{{.Names}}'")).toContain(`svc-${sandbox}`);
      await insist(first, `${SVC} sandbox kill ${sandbox}`);
    }
  },
  SET_UP_MS,
);

interface Mistake {
  readonly what: string;
  /** The token that is shown, in place of the one that was made. */
  readonly token?: (made: string) => string;
  /** Done before the command, and undone after it: on which machine. */
  readonly on?: "first" | "second";
  readonly does?: string;
  readonly undoes?: string;
  readonly says: RegExp;
}

/** A firewall of a machine that drops what comes to its ports. */
const closes = (ports: string) =>
  `nft 'table inet closed { chain in { type filter hook input priority -5; tcp dport { ${ports} } drop; }; }'`;
const OPENS = "nft delete table inet closed";
/** Another time for the programs of the platform alone: under the library CRIU and Docker do not work. */
const NODE = "/opt/svc/app/current/node";
const offBy = (hours: string) =>
  `mv ${NODE} ${NODE}.right && printf '%s\\n' '#!/bin/sh' 'export LD_PRELOAD=${FAKE_TIME} FAKETIME=${hours}h FAKETIME_DONT_FAKE_MONOTONIC=1' 'exec ${NODE}.right "$@"' >${NODE} && chmod 0755 ${NODE}`;
const RIGHT_TIME = `mv ${NODE}.right ${NODE}`;
const part = (index: number, change: (text: string) => string) => (token: string) =>
  token
    .split(".")
    .map((text, at) => (at === index ? change(text) : text))
    .join(".");
const lastChanged = (text: string) => text.slice(0, -1) + (text.endsWith("0") ? "1" : "0");

const mistakes: readonly Mistake[] = [
  {
    what: "a wrong token",
    token: part(3, lastChanged),
    says: /does not know this join token: .*what to do: .*node add/s,
  },
  { what: "a token that was cut off", token: (made) => made.slice(0, -3), says: /cut off or changed.*copy the whole/s },
  { what: "a used token", token: () => usedToken, says: /was used at .* by node .*make another one/s },
  {
    what: "a token of another authority",
    token: part(1, lastChanged),
    says: /the token is of another platform, .*Nothing of the token was sent; check the address/s,
  },
  {
    what: "a closed port on the orchestrator's machine",
    on: "first",
    does: closes("3003"),
    undoes: OPENS,
    says: /no packet comes back from https:\/\/198\.51\.100\.66:3003: open its port in the firewalls/,
  },
  {
    what: "closed ports on the new machine",
    on: "second",
    does: closes("5010, 5011"),
    undoes: OPENS,
    says: /does not reach the agent API of this node at https:\/\/198\.51\.100\.67:5010.*let the orchestrator's machine in at this port/s,
  },
  {
    what: "a clock that is four days ahead",
    on: "second",
    does: offBy(`+${OFF_H}`),
    undoes: RIGHT_TIME,
    says: /has ended by this machine's clock: set the clocks of both machines/,
  },
  {
    what: "a clock that is four days behind",
    on: "second",
    does: offBy(`-${OFF_H}`),
    undoes: RIGHT_TIME,
    says: /is not valid yet by this machine's clock: set the clocks of both machines/,
  },
];

test.each(mistakes)(
  "$what is answered by a sentence with the cure",
  async (mistake) => {
    const { token = (made: string) => made, on = "second", does = "true", undoes = "true", says } = mistake;
    const machine = on === "first" ? first : second;
    await insist(first, `./scripts/node remove ${await secondId()} --force`).catch(() => undefined);
    const { token: made, url } = await added();
    await insist(machine, does);
    let ended: Ended;
    try {
      ended = await type(second, `./scripts/up --join ${token(made)} ${url}`);
    } finally {
      await insist(machine, undoes);
    }
    console.log(ended.said);
    expect(ended.status).not.toBe(0);
    expect(ended.said).toMatch(says);
  },
  600_000,
);

test("the machine joins after all of them", async () => {
  await insist(first, `./scripts/node remove ${await secondId()} --force`).catch(() => undefined);
  expect(await insist(second, (await added()).command)).toContain(`Node ${await secondId()} of`);
}, 600_000);
