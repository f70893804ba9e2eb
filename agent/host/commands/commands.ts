/**
 * Runs programs of the host through `svc-commands`, which is small. To fork the agent takes about ten milliseconds of its only
 * thread, in which no start and no answer goes on. Where that program cannot run, the agent starts them itself.
 */

import { spawn } from "node:child_process";
import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { type Command, type Heard, type RunCommand, runCommand, type StartCommand, startedBy } from "../command.ts";
import { frame, KIND, readFrames, readNumber, startFrame } from "./frames.ts";

/** After `svc-commands` could not be started. */
const REST_MS = 10_000;
const TRIAL_MS = 5_000;
/** Of what `svc-commands` takes: more words it refuses, and a much longer input ends it. */
const MOST_WORDS = 256;
const LONGEST_INPUT = 4 * 1024 * 1024;

interface Commands {
  readonly run: RunCommand;
  /** Ends `svc-commands`; commands under way count as lost. It ends with this process in any case. */
  stop(): void;
}

interface Session {
  readonly start: StartCommand;
  readonly over: () => boolean;
  readonly end: () => void;
}

/**
 * @param program path of `svc-commands`
 * @param direct starts what `svc-commands` cannot
 */
export function hostCommands(program: () => Promise<string>, direct: RunCommand = runCommand): Commands {
  const state = {
    session: undefined as Session | undefined,
    opening: undefined as Promise<Session | undefined> | undefined,
    restUntil: 0,
  };

  const open = async (): Promise<Session | undefined> => {
    state.session = await program()
      .then(openSession)
      .then(tried)
      .catch(() => undefined);
    if (state.session === undefined) state.restUntil = Date.now() + REST_MS;
    state.opening = undefined;
    return state.session;
  };

  const session = (): Promise<Session | undefined> => {
    const { session: known, restUntil } = state;
    if (known !== undefined && !known.over()) return Promise.resolve(known);
    if (Date.now() < restUntil) return Promise.resolve(undefined);
    return (state.opening ??= open());
  };

  return {
    async run(name, args, options) {
      if (args.length >= MOST_WORDS || Buffer.byteLength(options?.input ?? "") > LONGEST_INPUT)
        return direct(name, args, options);
      const one = await session();
      return one === undefined ? direct(name, args, options) : startedBy(one.start)(name, args, options);
    },
    stop: () => state.session?.end(),
  };
}

/** One that cannot start a program is of no use. */
async function tried(session: Session | undefined): Promise<Session | undefined> {
  if (session === undefined) return undefined;
  try {
    await startedBy(session.start)("true", [], { timeoutMs: TRIAL_MS });
    return session;
  } catch (error) {
    session.end();
    throw error;
  }
}

function openSession(path: string): Session | undefined {
  // In a group of its own: Ctrl+C ends every program of the terminal's group, and the agent's shutdown still needs commands.
  const child = spawn(path, [], { stdio: ["pipe", "pipe", "ignore"], detached: true });
  child.once("error", () => undefined);
  if (child.pid === undefined) return undefined;
  const underWay = new Map<number, Heard & { readonly program: string }>();
  const state = { over: false, last: 0 };
  const held = [child, child.stdin, child.stdout] as unknown as { ref(): void; unref(): void }[];
  /** This process may end while no command runs, and not before the last one has. */
  const hold = () => {
    for (const one of held) if (underWay.size > 0) one.ref();
    for (const one of held) if (underWay.size === 0) one.unref();
  };
  const take = (number: number) => {
    const heard = underWay.get(number);
    underWay.delete(number);
    hold();
    return heard;
  };
  const lost = () => {
    state.over = true;
    const all = [...underWay.values()];
    underWay.clear();
    hold();
    for (const heard of all) heard.failed(undefined, "svc-commands has ended: how its command ended is not known");
  };
  child.once("close", lost);
  for (const stream of [child.stdin, child.stdout]) stream.on("error", () => child.kill("SIGKILL"));
  child.stdout.on(
    "data",
    readFrames(({ number, kind, rest }) => {
      if (kind === KIND.printed) underWay.get(number)?.printed(rest);
      else if (kind === KIND.complained) underWay.get(number)?.complained(rest);
      else if (kind === KIND.ended) ended(take(number), readNumber(rest));
      else if (kind === KIND.refused) refused(take(number), readNumber(rest));
    }),
  );
  hold();

  const start = ({ program, args, path: only, input }: Command, heard: Heard) => {
    const number = ++state.last;
    const text = startFrame(number, { words: [program, ...args], path: only, input });
    if (state.over) {
      heard.failed(new Error("svc-commands has ended"));
      return undefined;
    }
    underWay.set(number, { ...heard, program });
    hold();
    child.stdin.write(text);
    return {
      kill: () => void child.stdin.write(frame(number, KIND.kill)),
      leave: () => void take(number),
    };
  };
  return { start, over: () => state.over, end: () => void child.kill("SIGKILL") };
}

/** @param status as waitpid gives it */
function ended(heard: Heard | undefined, status: number): void {
  const by = status & 0x7f;
  if (by === 0) heard?.closed((status >> 8) & 0xff, null);
  else heard?.closed(null, nameOf(by));
}

function nameOf(signal: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === signal);
  return found?.[0] ?? `signal ${signal}`;
}

/** As Node says it of a program that it cannot start. */
function refused(heard: (Heard & { readonly program: string }) | undefined, errorNumber: number): void {
  const code = getSystemErrorName(-errorNumber);
  heard?.failed(Object.assign(new Error(`spawn ${heard.program} ${code}`), { code }));
}
