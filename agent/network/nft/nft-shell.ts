/**
 * Keeps one `nft -j -i` running and sends it lines: 0.6 ms per transaction, where a new process costs 6 ms. Replaces
 * the process when it dies, hangs, or has served long enough.
 */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

const ANSWER_LIMIT_MS = 5_000;
const MAX_OUTPUT_CHARACTERS = 8 * 1024 * 1024;
const LINES_PER_PROCESS = 1_000;
const PIDS_KEPT = 3;

/** Runs one line, which is one transaction. Resolves to its output, which is JSON; rejects with nft's message as text. */
type NftLine = (line: string) => Promise<string>;

export interface NftShell {
  /** Queues work of several lines, or of another process on the same table. */
  mutex<T>(work: (now: NftLine) => Promise<T>): Promise<T>;
  /** Whether this is, or recently was, the process that gets the lines. */
  isOwn(pid: number): boolean;
  stop(): void;
}

interface Session {
  readonly child: ChildProcessWithoutNullStreams;
  served: number;
}

/** Marks the end of the answer to the line before; nft answers it without the kernel, with any tables. */
const SENTINEL = "describe ipv4_addr";
// Some builds of nft show a prompt even to a pipe.
const SENTINEL_OUTPUT = /datatype ipv4_addr \([^\n]*\n(nft> ?)*$/;

export function nftShell(): NftShell {
  const state: { session: Session | undefined; queue: Promise<unknown> } = {
    session: undefined,
    queue: Promise.resolve(),
  };
  const pids: number[] = [];

  const end = () => {
    state.session?.child.kill("SIGKILL");
    state.session = undefined;
  };

  const open = (): Session => {
    if (state.session !== undefined && state.session.served < LINES_PER_PROCESS) return state.session;
    end();
    // 2>&1 so that complaints and answers arrive in the order in which they were written.
    const child = spawn("sh", ["-c", "exec nft -j -i 2>&1"], { stdio: ["pipe", "pipe", "pipe"] });
    const session: Session = { child, served: 0 };
    if (child.pid !== undefined) pids.push(child.pid);
    // The watch reports a change shortly after it was made.
    if (pids.length > PIDS_KEPT) pids.shift();
    const gone = () => {
      if (state.session === session) state.session = undefined;
    };
    child.once("error", gone);
    child.once("exit", gone);
    child.stdin.on("error", gone);
    child.unref();
    for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref(): void }).unref();
    state.session = session;
    return session;
  };

  const ask = (line: string): Promise<string> => {
    const session = open();
    session.served++;
    return new Promise((resolve, reject) => {
      const { child } = session;
      let text = "";
      const finish = (settle: () => void) => {
        clearTimeout(limit);
        child.stdout.off("data", read);
        child.off("exit", died);
        settle();
      };
      const fail = (why: string) =>
        finish(() => {
          end();
          reject(new Error(`nft ${why} at: ${line.slice(0, 200)}`));
        });
      const died = () => fail("ended");
      const read = (chunk: Buffer) => {
        text += chunk.toString("utf8");
        if (text.length > MAX_OUTPUT_CHARACTERS) fail("printed too much");
        else if (SENTINEL_OUTPUT.test(text)) {
          const answer = text.replace(SENTINEL_OUTPUT, "");
          finish(() => (/^Error:/m.test(answer) ? reject(new Error(`nft: ${answer.trim()}`)) : resolve(answer)));
        }
      };
      const limit = setTimeout(() => fail("did not answer"), ANSWER_LIMIT_MS);
      child.stdout.on("data", read);
      child.once("exit", died);
      child.stdin.write(`${line}\n${SENTINEL}\n`);
    });
  };

  const mutex = <T>(work: (now: NftLine) => Promise<T>): Promise<T> => {
    const answer = state.queue.then(() => work(ask));
    state.queue = answer.catch(() => undefined);
    return answer;
  };

  return {
    mutex,
    isOwn: (pid) => pids.includes(pid),
    stop: end,
  };
}
