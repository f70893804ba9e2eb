/**
 * Cuts the network between two programs of this machine. Packets on loopback have no other sign of who sends them, so the sender's
 * control group (net_cls) marks each packet, and the receiver's input hook drops it: as on a wire, neither side sees an error.
 */

import { mkdtemp, readFile, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../platform/programs.ts";
import { type Fleet, type FleetNode, type Member, memberPid, postgresPid } from "./fleet.ts";

/** Which packets between two sides do not arrive. */
export type Direction = "both ways" | "one way" | "the other way" | "slow";

export interface Side {
  readonly name: string;
  /** Its processes, those of its helpers with them. */
  readonly pids: readonly number[];
}

const TABLE = "svc-fleet-cut";
/** Begin of the names of the control groups of both sides. */
const GROUP = "svc-fleet-cut-";
/** Sides have these class ids and marks. */
const FIRST_MARK = 0x5c01;
/** What a slow connection carries: less than a dump needs to pass in a test, more than requests need. */
const SLOW = "over 2 mbytes/second burst 256 kbytes";

export async function sideOf(member: Member): Promise<Side> {
  const pid = await memberPid(member);
  return { name: `${member.program} of ${member.platform.instance}`, pids: await withChildren(pid) };
}

export async function postgresSide(): Promise<Side> {
  return { name: "PostgreSQL", pids: await withChildren(await postgresPid()) };
}

export async function orchestratorsSide({ orchestrators }: Fleet): Promise<Side> {
  const sides = await Promise.all(orchestrators.map(sideOf));
  return { name: "the orchestrators", pids: sides.flatMap(({ pids }) => pids) };
}

/** Everything of the fleet but one node. */
export async function othersSide(fleet: Fleet, node: FleetNode): Promise<Side> {
  const others = [...fleet.orchestrators, ...fleet.edges, ...fleet.nodes.filter((one) => one !== node)];
  const sides = await Promise.all(others.map(sideOf));
  return { name: `all but ${node.id}`, pids: sides.flatMap(({ pids }) => pids) };
}

/**
 * Cuts, does the work, and mends, also when the work fails.
 * @param direction "one way": what the first side sends does not arrive; "the other way": what the second one sends
 */
export async function whileCut<Result>(
  [one, other]: readonly [Side, Side],
  direction: Direction,
  work: () => Promise<Result>,
): Promise<Result> {
  await mend();
  try {
    await classify([one, other]);
    const rules = await rulesOf([one, other], direction);
    await run("nft", [
      [
        `table inet ${TABLE} {`,
        "chain sent { type filter hook output priority -400; policy accept;",
        ...[one, other].map((_, index) => `meta cgroup ${mark(index)} meta mark set ${mark(index)};`),
        "}",
        "chain received { type filter hook input priority -400; policy accept;",
        ...rules,
        "}",
        "}",
      ].join("\n"),
    ]);
    const result = await work();
    if (direction !== "slow" && (await dropped()) === 0)
      throw new Error(`no packet between ${one.name} and ${other.name} was cut`);
    return result;
  } finally {
    await mend();
  }
}

async function rulesOf(sides: readonly [Side, Side], direction: Direction): Promise<readonly string[]> {
  const verdict = direction === "slow" ? `limit rate ${SLOW} counter drop` : "counter drop";
  const ways = { "both ways": [0, 1], slow: [0, 1], "one way": [0], "the other way": [1] }[direction];
  const rules: string[] = [];
  for (const from of ways) {
    const to = 1 - from;
    // The first packet of a connection belongs to no socket yet, only to a port.
    const ports = await listeningPorts(sides[to as 0 | 1]);
    rules.push(`meta mark ${mark(from)} meta cgroup ${mark(to)} ${verdict};`);
    if (ports.length > 0) rules.push(`meta mark ${mark(from)} tcp dport { ${ports.join(", ")} } ${verdict};`);
  }
  return rules;
}

async function dropped(): Promise<number> {
  const text = await run("nft", ["list", "table", "inet", TABLE]);
  return [...text.matchAll(/counter packets (\d+)/g)].reduce((sum, [, packets]) => sum + Number(packets), 0);
}

function mark(index: number): number {
  return FIRST_MARK + index;
}

/** Removes the cut of this or of an earlier run. */
async function mend(): Promise<void> {
  await run("nft", [`table inet ${TABLE}; delete table inet ${TABLE}`]);
  await inHierarchy(
    `for group in ${GROUP}*; do
      [ -d "$group" ] || continue
      while read -r pid; do echo "$pid" >cgroup.procs || [ ! -d "/proc/$pid" ]; done <"$group/cgroup.procs"
      rmdir "$group"
    done`,
  );
}

async function classify(sides: readonly Side[]): Promise<void> {
  const steps = sides.flatMap(({ pids }, index) => {
    const group = `${GROUP}${index}`;
    return [
      `mkdir ${group} && echo ${mark(index)} >${group}/net_cls.classid`,
      // A process that has ended meanwhile needs no move.
      ...pids.map((pid) => `echo ${pid} >${group}/cgroup.procs || [ ! -d /proc/${pid} ]`),
    ];
  });
  await inHierarchy(steps.join("\n"));
}

/**
 * Runs a script in the root of the hierarchy of net_cls, which only that script sees mounted: containers do not start while the
 * machine has a mount of it that Docker did not know before. The groups stay.
 */
async function inHierarchy(script: string): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), "svc-fleet-cut-"));
  try {
    const whole = `set -e\nmount -t cgroup -o net_cls none ${place}\ncd ${place}\n${script}`;
    await run("unshare", ["--mount", "--propagation", "private", "bash", "-c", whole]);
  } finally {
    await rmdir(place);
  }
}

async function withChildren(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const children = await Promise.all(text.split(" ").filter(Boolean).map(Number).map(withChildren));
  return [pid, ...children.flat()];
}

async function listeningPorts({ pids }: Side): Promise<readonly number[]> {
  const lines = (await run("ss", ["-Hltnp"])).split("\n");
  const own = lines.filter((line) => pids.some((pid) => line.includes(`pid=${pid},`)));
  const ports = own.map((line) => Number(/:(\d+)\s/.exec(line)?.[1]));
  return [...new Set(ports.filter((port) => Number.isInteger(port)))];
}
