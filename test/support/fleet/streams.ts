/** Streams through each edge of a fleet, from a sandbox on each node. One that ends is opened again, as a client does. */

import { setTimeout as delay } from "node:timers/promises";
import { type CommandHandle, Sandbox } from "e2b";
import { expect } from "vitest";
import type { Lasting } from "../sandbox/lasting.ts";
import { type FleetNode, nameOf } from "./fleet.ts";
import { mark, note, type Roll } from "./roll.ts";

export interface Placed {
  readonly node: FleetNode;
  readonly one: Lasting;
}

interface Stream {
  /** The edge that carries it. */
  readonly edge: string;
  /** The agent of its sandbox. */
  readonly agent: string;
  lines: number;
}

const HOUR_MS = 3_600_000;
/** A line of output, three times a second. */
const TICKS = "while :; do echo tick; sleep 0.3; done";

/** Opens a stream through each edge to each of the sandboxes. */
export async function openStreams(roll: Roll, placed: readonly Placed[]): Promise<readonly Stream[]> {
  const opened = placed.flatMap((to) => [...roll.fleet.edges.keys()].map((edge) => openStream(roll, to, edge)));
  return Promise.all(opened);
}

async function openStream(roll: Roll, { node, one }: Placed, edge: number): Promise<Stream> {
  const { edges } = roll.fleet;
  const through = edges[edge];
  if (through === undefined) throw new Error(`there is no edge ${edge}`);
  const stream: Stream = { edge: nameOf(through), agent: nameOf(node), lines: 0 };
  const options = {
    timeoutMs: 0,
    onStdout: () => {
      stream.lines++;
    },
  };
  const sandbox = await Sandbox.connect(one.id, { ...roll.fleet.sdk(0, edge), timeoutMs: HOUR_MS });
  const handle = await sandbox.commands.run(TICKS, { ...options, background: true });
  void keepOpen(roll, stream, handle, () => sandbox.commands.connect(handle.pid, options));
  return stream;
}

async function keepOpen(
  roll: Roll,
  { edge, agent }: Stream,
  first: CommandHandle,
  again: () => Promise<CommandHandle>,
): Promise<void> {
  let handle: CommandHandle | undefined = first;
  while (!roll.over.aborted) {
    try {
      handle ??= await again();
      await handle.wait();
      throw new Error("the command of the stream was told as ended");
    } catch (error) {
      if (roll.over.aborted) return;
      note(roll, mark(roll), { asked: edge, below: agent, what: `stream: ${String(error)}` });
      await delay(200);
    }
    handle = undefined;
  }
}

/** Waits for more output on each of them. */
export async function expectOutput(streams: readonly Stream[]): Promise<void> {
  const before = streams.map(({ lines }) => lines);
  const silent = () =>
    streams.filter(({ lines }, index) => lines <= (before[index] ?? 0)).map(({ edge, agent }) => `${edge} to ${agent}`);
  await expect.poll(silent, { timeout: 60_000, message: "streams without output" }).toEqual([]);
}
