/**
 * Cuts the network between two programs of this machine. Connections on loopback have no other sign of who makes them, so the control
 * group (net_cls) of the side that connects to a port of the other marks the connection, and the input hook drops its packets in one
 * direction or both: as on a wire, neither side sees an error.
 */

import { mkdtemp, readFile, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../platform/programs.ts";
import type { FleetStore } from "./blob-store.ts";
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
/** Whether a process is more than its name. */
const LIVES = `lives() { grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"; }`;
/** What a slow connection carries: less than a dump needs to pass in a test, more than requests need. */
const SLOW = "over 2 mbytes/second burst 256 kbytes";

export async function sideOf(member: Member): Promise<Side> {
  const pid = await memberPid(member);
  return { name: `${member.program} of ${member.platform.instance}`, pids: await withChildren(pid) };
}

export async function postgresSide(): Promise<Side> {
  return { name: "PostgreSQL", pids: await withChildren(await postgresPid()) };
}

export async function storeSide(store: FleetStore): Promise<Side> {
  return { name: "the blob store", pids: await store.pids() };
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
 * @param options `quiet`: they may have nothing to say to each other meanwhile; otherwise a cut without a lost packet is an error
 */
export async function whileCut<Result>(
  [one, other]: readonly [Side, Side],
  direction: Direction,
  work: () => Promise<Result>,
  { quiet = false }: { readonly quiet?: boolean | undefined } = {},
): Promise<Result> {
  await mend();
  try {
    await classify([one, other]);
    await run("nft", [
      [
        `table inet ${TABLE} {`,
        // Behind connection tracking.
        "chain sent { type filter hook output priority -150; policy accept;",
        ...(await marksOf([one, other])),
        "}",
        "chain received { type filter hook input priority -150; policy accept;",
        ...rulesOf(direction),
        "}",
        "}",
      ].join("\n"),
    ]);
    const result = await work();
    if (!quiet && direction !== "slow" && (await dropped()) === 0)
      throw new Error(`no packet between ${one.name} and ${other.name} was cut`);
    return result;
  } finally {
    await mend();
  }
}

/** A connection has the mark of the side that makes it. */
async function marksOf(sides: readonly [Side, Side]): Promise<readonly string[]> {
  const rules = sides.map(async (_, from) => {
    const ports = await listeningPorts(sides[from === 0 ? 1 : 0]);
    return ports.length === 0
      ? []
      : [`meta cgroup ${mark(from)} tcp dport { ${ports.join(", ")} } ct mark set ${mark(from)};`];
  });
  return (await Promise.all(rules)).flat();
}

/** What the side `from` sends are the packets of its own connections, and the answers in those of the other side. */
function rulesOf(direction: Direction): readonly string[] {
  const verdict = direction === "slow" ? `limit rate ${SLOW} counter drop` : "counter drop";
  const ways = { "both ways": [0, 1], slow: [0, 1], "one way": [0], "the other way": [1] }[direction];
  return ways.flatMap((from) => [
    `ct mark ${mark(from)} ct direction original ${verdict};`,
    `ct mark ${mark(1 - from)} ct direction reply ${verdict};`,
  ]);
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
    // What a process starts before it is moved is in its group, too.
    `for group in ${GROUP}*; do
      [ -d "$group" ] || continue
      for _ in $(seq 100); do
        while read -r pid; do echo "$pid" >cgroup.procs || continue; done <"$group/cgroup.procs"
        if rmdir "$group" 2>/dev/null; then break; fi
        sleep 0.05
      done
      [ ! -d "$group" ]
    done`,
  );
}

async function classify(sides: readonly Side[]): Promise<void> {
  const steps = sides.flatMap(({ pids }, index) => {
    const group = `${GROUP}${index}`;
    return [
      `mkdir ${group} && echo ${mark(index)} >${group}/net_cls.classid`,
      // A process that has ended meanwhile needs no move, nor one that has ended and is still named.
      ...pids.map((pid) => `echo ${pid} >${group}/cgroup.procs || if lives ${pid}; then exit 1; fi`),
    ];
  });
  await inHierarchy([LIVES, ...steps].join("\n"));
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
