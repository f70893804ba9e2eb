/** Runs one command line: reads it, loads the command, and says what failed. Resolves to the exit code. */

import { CommanderError } from "commander";
import { proxyWords } from "./api/proxies.ts";
import { withBoundary } from "./boundary.ts";
import { type Context, createContext, type Streams } from "./context.ts";
import { COMMANDS, GROUPS } from "./definitions/all.ts";
import { EXIT, Failure, usage } from "./failure.ts";
import { wordsOf } from "./installed.ts";
import { meant } from "./nearest.ts";
import { escapeLine, escapeText } from "./output/escape.ts";
import { createProgram } from "./program.ts";

export interface Surroundings {
  readonly env: Context["env"];
  readonly streams: Streams;
}

/** Time in which a command puts away what it was making, after the reader of its output has gone. */
const PUT_AWAY_MS = 15_000;

/** For the shell: 128 and the number of the signal. */
const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Of failures of this machine that any command may meet. */
const WAYS_OUT: Readonly<Record<string, string>> = {
  ENOSPC: "a file system of this machine is full: `df -h` and `df -i` show which; temporary files go where TMPDIR says",
  EDQUOT: "the quota of this user on a file system of this machine is used up",
};

export async function run(line: readonly string[], { env, streams }: Surroundings): Promise<number> {
  const words = askedForHelp(line) ?? line;
  const ended = new AbortController();
  let code: number = EXIT.interrupted;
  for (const [signal, status] of Object.entries(SIGNALS)) {
    // The second one ends a command that does not end by itself.
    process.on(signal, () => {
      if (ended.signal.aborted) process.exit(status);
      code = status;
      ended.abort(new Failure("interrupted", { exitCode: status }));
    });
  }
  // The reader has closed the pipe, as `head` does: the command ends as after a signal, without a message. Of a full disk there is one.
  const onClosed = ({ code: cause, message }: NodeJS.ErrnoException) => {
    if (ended.signal.aborted) return;
    if (cause !== "EPIPE")
      streams.stderr.write(`error: the output cannot be written: ${escapeLine(cause ?? message)}\n`);
    code = EXIT.failed;
    ended.abort(new Failure("nobody reads the output", { exitCode: EXIT.failed }));
    setTimeout(() => process.exit(EXIT.failed), PUT_AWAY_MS).unref();
  };
  streams.stdout.on("error", onClosed);
  streams.stderr.on("error", onClosed);

  let exitCode = 0;
  const program = createProgram({
    commands: COMMANDS,
    groups: GROUPS,
    write: streams,
    async act(command, args, options) {
      const action = await command.load();
      exitCode = (await action(createContext({ env, streams, signal: ended.signal, options }), args, options)) ?? 0;
    },
  });
  try {
    if (words.length === 0) {
      program.outputHelp();
      return 0;
    }
    const instead = meant({ commands: COMMANDS, groups: GROUPS }, words);
    if (instead.length > 0) throw unknown(words, instead);
    await program.parseAsync(withBoundary(COMMANDS, words), { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT.usage;
    if (ended.signal.aborted) return code;
    return failed(error, { env, streams });
  }
}

/** `svc help sandbox`, and `svc sandbox help`. Undefined: the line is another one. */
function askedForHelp([first = "", second, ...rest]: readonly string[]): readonly string[] | undefined {
  if (first === "help") return [...(second === undefined ? [] : [second]), ...rest, "--help"];
  return second === "help" && GROUPS.some(({ name }) => name === first) ? [first, ...rest, "--help"] : undefined;
}

function unknown(words: readonly string[], instead: readonly string[]): Failure {
  const isGroup = GROUPS.some(({ name }) => name === words[0]);
  const names = instead.map((name) => `svc ${name}`).join(", ");
  return usage(`unknown command '${(isGroup ? words[1] : words[0]) ?? ""}'`, `(Did you mean ${names}?)`);
}

function failed(error: unknown, { env, streams }: Surroundings): number {
  const { message, wayOut, exitCode, unreached } =
    error instanceof Failure
      ? error
      : new Failure(error instanceof Error ? error.message : String(error), { cause: error });
  const { code = "" } = ((error instanceof Failure ? error.cause : error) ?? {}) as NodeJS.ErrnoException;
  const words = wordsOf(env);
  const ways = [wayOut, WAYS_OUT[code], unreached === undefined ? undefined : proxyWords(env, unreached)];
  const lines = ways.flatMap((way) => (way === undefined ? [] : [`${escapeText(words(way))}\n`]));
  streams.stderr.write(`error: ${escapeText(words(message))}\n${lines.join("")}`);
  return exitCode;
}
