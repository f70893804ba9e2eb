/** Where the program of `svc sandbox exec` begins, with `--` and without. */

import { expect, test } from "vitest";
import { withBoundary } from "../../../cli/boundary.ts";
import { COMMANDS } from "../../../cli/definitions/all.ts";

const EXEC = ["sandbox", "exec"];

test.each([
  ["i1 ls -la", "i1 -- ls -la"],
  // Each of these options is one of svc, too.
  ["i1 sort -u file", "i1 -- sort -u file"],
  ["i1 grep -e A=b file", "i1 -- grep -e A=b file"],
  ["-u root -e A=b i1 python3 -u -t 5", "-u root -e A=b i1 -- python3 -u -t 5"],
  ["i1 --cwd /srv ls --cwd /", "i1 --cwd /srv -- ls --cwd /"],
  ["-uroot --cwd=/srv -d i1 ls -d", "-uroot --cwd=/srv -d i1 -- ls -d"],
  ["-du root --context work i1 ls", "-du root --context work i1 -- ls"],
  ["i1 ls -- -la", "i1 -- ls -- -la"],
  ["i1 - x", "i1 -- - x"],
  // With it, everything is as it was.
  ["i1 -- sort -u file", "i1 -- sort -u file"],
  ["i1 --cwd /srv -- ls", "i1 --cwd /srv -- ls"],
  ["-- i1 ls", "-- i1 ls"],
  ["i1 --help", "i1 --help"],
  ["i1", "i1"],
])("of `svc sandbox exec %s` the words are `%s`", (line, words) => {
  expect(withBoundary(COMMANDS, [...EXEC, ...line.split(" ")])).toEqual([...EXEC, ...words.split(" ")]);
});

test.each([["-it"], ["-ti"], ["-i"], ["-dit"], ["--interactive"], ["--tty"]])(
  "`svc sandbox exec %s` names the command that opens a terminal",
  (option) => {
    const wayOut = expect.stringContaining("svc sandbox connect SANDBOX") as string;
    expect(() => withBoundary(COMMANDS, [...EXEC, option, "i1", "bash"])).toThrow(
      expect.objectContaining({ message: `unknown option '${option}'`, wayOut, exitCode: 2 }),
    );
    // Of the program it is the program's.
    expect(withBoundary(COMMANDS, [...EXEC, "i1", "bash", option])).toEqual([...EXEC, "i1", "--", "bash", option]);
  },
);

test.each([[["sandbox", "kill", "i1", "i2", "-l", "a=b"]], [["forward", "i1", "80", "81"]], [["help"]], [[]]])(
  "the line %j stays as it is",
  (words) => {
    expect(withBoundary(COMMANDS, words)).toEqual(words);
  },
);
