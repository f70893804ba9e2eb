/** Text for bash: the settings of the shell that runs the cells, and the commands that it gets. Pure. */

import type { Changes } from "../../kernel.ts";
import { markOf } from "./marks.ts";

/** In the place of an exit status, in the mark before a command. */
export const BEGUN = 999;

/**
 * An interactive shell without an editor, prompts and echo: only an interactive one gives each program the terminal, so
 * that an interrupt stops the program and leaves the shell. Each time it would ask for a command, it prints a mark: on the
 * terminal itself, because a cell can send the shell's output elsewhere (`exec >log`). Into a pipe (`exec > >(tee log)`) it goes
 * first: what comes out of that pipe must not be behind the mark. The second mark of a cell means nothing.
 */
export function settings(nonce: string): string {
  return `[ -f /etc/bash.bashrc ] && . /etc/bash.bashrc
[ -f ~/.bashrc ] && . ~/.bashrc
set +o history
unset HISTFILE MAILCHECK
stty -echo -onlcr -ixon 2>/dev/null
shopt -u checkwinsize
__svc_number=0
__svc_say() { printf "$@" >/dev/tty || printf "$@"; }
__svc_done() { local status=$?; [ ! -p /dev/stdout ] || { (printf '${markOf(nonce, "%s", "%s")}' "$__svc_number" "$status"); sleep 0.2; } || :; __svc_say '${markOf(nonce, "%s", "%s")}' "$__svc_number" "$status"; return 0; }
__svc_begun() { __svc_say '${markOf(nonce, "%s", String(BEGUN))}' "$__svc_number"; }
PS0= PS1= PS2= PROMPT_COMMAND=__svc_done
`;
}

/** Without what `set -x` would say about it. */
const DONE = "PROMPT_COMMAND='{ __svc_done; } 2>/dev/null'";
/** `read` has the status 1 at the end of a file, which would end a shell with `set -e`. */
const READ = "IFS= read -r -d '' __svc_code";
/** With `set -x` on, only the cell's own commands are traced. */
const TRACED = `case $- in *x*) set +x; __svc_code="set -x; $__svc_code" ;; esac`;

/**
 * Runs the code in a file at the top level of the shell, where declarations stay. Standard input is empty, because the
 * terminal's has the commands of the server.
 */
export function runLine(number: number, file: string): string {
  const before = `${DONE} PS1= __svc_number=${number}; ${READ} <${quoted(file)} || :; ${TRACED}; __svc_begun`;
  return ` { ${before}; } 2>/dev/null; eval "$__svc_code" </dev/null\n`;
}

/** A script with an exit status other than 0 when a change failed. */
export function changeScript({ set, remove, cwd, reseed }: Changes, seed: number): string {
  const lines = Object.entries(set)
    .filter(([name]) => isName(name))
    .map(([name, value]) => `export ${name}=${quoted(value)}`);
  for (const name of remove) if (isName(name)) lines.push(`unset ${name}`);
  if (reseed) lines.push(`RANDOM=${seed}`);
  lines.push(cwd === null ? "true" : `cd -- ${quoted(cwd)}`);
  return lines.join("\n");
}

/** Bash has no other variables; a process can. */
function isName(name: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
