/** A real program of the matrix: how it is started in a sandbox, and how it shows that it is the same one and goes on. */

/** The templates of the rows; `programs` is that of `./scripts/template programs`. */
type TemplateName = "programs" | "browser" | "desktop";

export interface Program {
  readonly name: string;
  readonly template: TemplateName;
  /** In its directory. */
  readonly files: Readonly<Record<string, string>>;
  /** Packages of this checkout, which its directory gets with all that they need. */
  readonly packages: readonly string[];
  /** The same of test/support/more-packages. */
  readonly morePackages: readonly string[];
  /** Starts it, and ends when it answers. A second call, after a boot from the disk, starts it again. For bash, behind PRELUDE. */
  readonly start: string;
  /** Makes it do something, and prints `IDENTITY NUMBER`. For bash, behind PRELUDE. */
  readonly ask: string;
  /** `asks`: the number is one more after each question; `time`: it grows by itself. */
  readonly counts: "asks" | "time";
  /** The longest time in which the number of `time` grows. */
  readonly growsWithinMs: number;
  /** Identity and number are on the disk, so that a boot keeps them. */
  readonly isDurable: boolean;
  /** With which reason it is refused to store the program; undefined: it is stored. */
  readonly refused: RegExp | undefined;
}

const GROWS_WITHIN_MS = 30_000;

type Given = Pick<Program, "name" | "start" | "ask"> & Partial<Program>;

export function program(given: Given): Program {
  return {
    template: "programs",
    files: {},
    packages: [],
    morePackages: [],
    counts: "asks",
    growsWithinMs: GROWS_WITHIN_MS,
    isDurable: false,
    refused: undefined,
    ...given,
  };
}

/**
 * A program that reads lines, and prints `IDENTITY NUMBER` at its start and for each line, with a number that is one larger.
 * @param command what runs it; `before` builds it
 */
export function counter(
  name: string,
  command: string,
  files: Readonly<Record<string, string>>,
  { before = "true", ...more }: Partial<Program> & { readonly before?: string } = {},
): Program {
  return program({ name, files, start: `${before}\ncounter ${command}`, ask: "answer", ...more });
}

/** The directory of a program in its sandbox, below the home directory. */
export function directoryOf({ name }: Program): string {
  return `matrix-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
}

/** What the scripts of programs call. */
export const PRELUDE = `set -eu
# apart COMMAND…: runs it in a session of its own, which the end of this script does not end.
apart() {
  setsid "$@" </dev/null >>log 2>&1 &
  echo $! >>pids
}
# counter COMMAND…: the same, with the lines that \`answer\` sends as its input.
counter() {
  [ -p in ] || mkfifo in
  : >out
  setsid "$@" <>in >>out 2>>log &
  echo $! >>pids
  until [ -s out ]; do sleep 0.05; done
}
# answer: sends a line to the counter, and prints the line that it prints.
answer() {
  local before
  before=$(wc -l <out)
  echo 1<>in
  until [ "$(wc -l <out)" -gt "$before" ]; do sleep 0.05; done
  tail -n 1 out
}
# reached COMMAND…: waits until the command succeeds.
reached() {
  until "$@" >/dev/null 2>&1; do sleep 0.1; done
}
`;
