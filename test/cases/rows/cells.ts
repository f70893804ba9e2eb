/** Cases of the section. Columns: see ../table.ts. */
export const cells: Readonly<Record<string, string>> = {
  bash: `
set -euo pipefail in one cell, another cell after it | "Context was restarted: the kernel ended with exit code 1", its variables lost => the next cells run, with the variables | integration/interpreter/cells.test.ts | lets the next cell run
exec >log 2>&1 | the cell never ended => it ends, and what follows is in the file | integration/interpreter/cells.test.ts | exec >file sends what follows there, and cells end
a progress bar, which writes to one line with carriage returns | nothing until its end => shown at least twice a second | integration/interpreter/cells.test.ts | a progress bar of bash is shown while it moves
sibling: set -x | traced the server's own commands, with their secret => the cell's commands alone | integration/interpreter/cells.test.ts | set -x shows the cell's commands and none of the server's
sibling: trap 'echo failed' ERR after set -e | the shell ended with the next cell => the next cell runs, and nothing is said | integration/interpreter/cells.test.ts | lets the next cell run
sibling: exit 3 | "the kernel ended with exit code 3", without what did it => the reason names exit and set -e | integration/interpreter/ending.test.ts | is started again
`,
  "JavaScript and TypeScript": `
fileURLToPath(import.meta.url) | SyntaxError: Cannot use 'import.meta' outside a module => the folder of the context | integration/interpreter/cells.test.ts | has the folder and the address of its module
if (require.main === module) main() | nothing ran, and nothing was said => main runs | integration/interpreter/cells.test.ts | is the program that runs, with no arguments
import { Request } from "express" in TypeScript, where Request is a type | SyntaxError: does not provide an export named 'Request' => runs | integration/interpreter/cells.test.ts | types that a cell of TypeScript imports as values are no error
await fetch(…) of a port that is closed | "TypeError: fetch failed" alone => with its cause | integration/interpreter/cells.test.ts | says why it failed when only an error inside does
sibling: main() above async function main() in a cell with imports | the run ended before main did, and its output was lost => waited for | unit/interpreter/kernels/cell.test.ts | a program that is started in its last statement is waited for
sibling: const started = main(), which fails | nothing was said => "Uncaught Error" on stderr, in the same run | integration/interpreter/cells.test.ts | says which promise failed though nothing waited for it
sibling: process.argv.slice(2) | ["javascript"] => [] | integration/interpreter/cells.test.ts | is the program that runs, with no arguments
sibling: await import() of a package that was installed with npm -g | ERR_MODULE_NOT_FOUND, where import found it => found | integration/interpreter/cells.test.ts | finds with import(…) what import finds
sibling: the output of a child process, passed on in pieces that end inside of characters | broken characters => whole | integration/interpreter/cells.test.ts | passes on bytes that end inside of a character
`,
  Python: `
exit() at the end of a cell, another cell at once | "Context was restarted: the kernel ended with exit code 0" for the other cell => it runs in a new kernel | integration/interpreter/ending.test.ts | after exit() is gone before the next run
sibling: exit() with a thread that goes on | the next run waited for ever => it runs in a new kernel | integration/interpreter/ending.test.ts | after exit() is gone before the next run
sibling: much output for a client that reads nothing for six seconds | the run ended as if complete, without the rest => all of it | unit/interpreter/kernels/jupyter.test.ts | whose reply comes while a slow client takes its output
sibling: sys.stdout.write("stderr") | was in stderr => in stdout | unit/interpreter/kernels/jupyter.test.ts | a program that prints the word stderr prints it where it does
`,
};
