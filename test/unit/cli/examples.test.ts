/** The definitions of the commands: each has an example that the command line takes, and a place in help. */

import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { candidates } from "../../../cli/completion.ts";
import type { Args, Command } from "../../../cli/definition.ts";
import { COMMANDS, GROUPS } from "../../../cli/definitions/all.ts";
import { FIRST_STEPS, LATER_STEPS } from "../../../cli/first-steps.ts";
import { meant } from "../../../cli/nearest.ts";
import type { Options } from "../../../cli/options.ts";
import { createProgram } from "../../../cli/program.ts";

interface Called {
  readonly command: Command;
  readonly args: Args;
  readonly options: Options;
}

async function parse(words: readonly string[]): Promise<Called> {
  const called: Called[] = [];
  const write = { stdout: new PassThrough(), stderr: new PassThrough() };
  const program = createProgram({
    commands: COMMANDS,
    groups: GROUPS,
    write,
    act: (command, args, options) => {
      called.push({ command, args, options });
      return Promise.resolve();
    },
  });
  await program.parseAsync(words, { from: "user" });
  const [only] = called;
  if (only === undefined || called.length !== 1) throw new Error(`${called.length} commands were called`);
  return only;
}

/** The words of a line as a shell makes them, up to a pipe or a redirection. */
function wordsOf(line: string): readonly string[] {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const end = words.findIndex((word) => /^[|<>]/.test(word));
  return end < 0 ? words : words.slice(0, end);
}

test.each(COMMANDS.map((command) => [command.name, command] as const))(
  "the example of `svc %s` is a command line of it",
  async (_name, command) => {
    const [svc, ...words] = wordsOf(command.example);
    expect(svc).toBe("svc");
    expect((await parse(words)).command.name).toBe(command.name);
  },
);

const steps = [...FIRST_STEPS, ...LATER_STEPS.flatMap(([, more]) => more)];
test.each(steps.map(({ line }) => [line]))("the first step `%s` is a command", async (line) => {
  const [svc, ...words] = wordsOf(line);
  expect(svc).toBe("svc");
  expect(line).toMatch(new RegExp(`^svc ${(await parse(words)).command.name}\\b`));
});

test.each([
  [["create"], ["sandbox create", "snapshot create", "volume create", "secret create"]],
  [["sandbox", "ssh"], ["sandbox connect"]],
  [["volume", "rm", "data"], ["volume delete"]],
  [["sandbox", "remove", "i1"], ["sandbox kill"]],
  [["sandbox", "unpause", "i1"], ["sandbox resume"]],
  [
    ["secret", "set", "openai"],
    ["secret create", "secret update"],
  ],
  [["template", "create"], ["template build"]],
  [["auth", "logout"], ["context remove"]],
  [["port-forward", "i1", "80"], ["forward"]],
  [["version"], ["--version"]],
  // Commands without a group.
  [["sandbox", "explain", "i1"], ["explain"]],
  [["sandbox", "events"], ["events"]],
  [["node", "top"], ["top"]],
  // Known, hidden, unknown, and no words of commands.
  [["sandbox", "list"], []],
  [["complete"], []],
  [["sandbox", "constructor"], []],
  [["--help"], []],
  [["sandbox", "--help"], []],
])("%j may mean %j", (words, commands) => {
  expect(meant({ commands: COMMANDS, groups: GROUPS }, words)).toEqual(commands);
});

/** What the parser says of a line that it refuses. */
async function mistake(...words: readonly string[]): Promise<string> {
  let said = "";
  const stderr = new PassThrough().on("data", (data: Buffer) => void (said += data.toString()));
  const write = { stdout: new PassThrough(), stderr };
  const program = createProgram({ commands: COMMANDS, groups: GROUPS, write, act: () => Promise.resolve() });
  await expect(program.parseAsync(words, { from: "user" })).rejects.toThrow();
  return said;
}

test.each([
  // By letters it is --no-memory.
  [["sandbox", "create", "--memory", "512"], "unknown option '--memory'\n(Did you mean --memory-size?)\n"],
  [["sandbox", "logs", "i1", "--tail=5"], "(Did you mean --limit?)"],
  [["sandbox", "list", "--json"], "(Did you mean --output json?)"],
  [["sandbox", "list", "-a"], "(Did you mean --state?)"],
  [["events", "--watch"], "(Did you mean --follow?)"],
  [["sandbox", "exec", "-w", "/srv", "i1", "ls"], "(Did you mean --cwd?)"],
  [["sandbox", "list", "--selectr", "a=b"], "(Did you mean --selector?)"],
  // Nothing is near, or something is missing.
  [["sandbox", "list", "--yes"], "unknown option '--yes'\n(`svc sandbox list --help` shows what there is)\n"],
  [["sandbox", "info"], "(`svc sandbox info --help` shows what there is)"],
  [["sandbox", "nothing-near"], "(`svc sandbox --help` shows what there is)"],
  [["nothing-near"], "(`svc --help` shows what there is)"],
])("the mistake %j is told with a way out: %s", async (words, said) => {
  expect(await mistake(...words)).toContain(said);
});

test("every command loads", async () => {
  for (const command of COMMANDS) expect(typeof (await command.load())).toBe("function");
});

test("every group of commands has some, and every command with two words a group", () => {
  const used = new Set(
    COMMANDS.map(({ name }) => name.split(" ")).flatMap(([group, word]) => (word === undefined ? [] : [group])),
  );
  expect(used).toEqual(new Set(GROUPS.map(({ name }) => name)));
});

test("words after -- are the program's own, also those that look like flags of svc", async () => {
  const { args, options } = await parse(["sandbox", "exec", "i1", "--cwd", "/srv", "--", "ls", "--help", "--", "-d"]);
  expect(args.first).toBe("i1");
  expect(args.rest).toEqual(["ls", "--help", "--", "-d"]);
  expect(options).toMatchObject({ cwd: "/srv" });
  expect(options.detach).toBeUndefined();
});

test("values of options are read: durations, pairs, labels, lists", async () => {
  const words = ["sandbox", "create", "-t", "1h30m", "-e", "A=b=c", "-e", "D=e,f", "-m", "k=v"];
  expect((await parse(words)).options).toMatchObject({
    timeout: 5400,
    env: { A: "b=c", D: "e,f" },
    metadata: { k: "v" },
  });
  expect((await parse(["sandbox", "list", "-l", "a=1,b=2", "-l", "c=3"])).options).toMatchObject({
    selector: { a: "1", b: "2", c: "3" },
  });
  expect((await parse(["key", "create", "ci", "--scope", "read,sandboxes"])).options).toMatchObject({
    scope: ["read", "sandboxes"],
  });
});

test.each([
  [["node", "cordon", "node/n1"], "n1", []],
  [["sandbox", "kill", "sandbox/i1", "i2"], "", ["i1", "i2"]],
  [["sandbox", "create", "template/t1"], "t1", []],
  // Another kind's, a path and the words of a program are what they say.
  [["node", "cordon", "sandbox/n1"], "sandbox/n1", []],
  [["sandbox", "exec", "sandbox/i1", "--", "sandbox/x"], "i1", ["sandbox/x"]],
] as const)("what `-o name` has written is an argument: %j", async (words, first, rest) => {
  const { args } = await parse(words);
  expect([args.first, args.rest]).toEqual([first, rest]);
});

test("what `-o name` has written is a value of an option, too, where that names a thing", async () => {
  expect((await parse(["events", "--sandbox", "sandbox/i1"])).options).toMatchObject({ sandbox: "i1" });
  expect((await parse(["usage", "--project", "project/prj_1"])).options).toMatchObject({ project: "prj_1" });
  expect((await parse(["context", "use", "context/work"])).args.first).toBe("work");
  // A path is a path.
  expect((await parse(["auth", "login", "--key-file", "key/of-mine"])).options).toMatchObject({
    keyFile: "key/of-mine",
  });
});

test.each([
  [["sandbox", "kill", ""], "the argument [sandbox...] is empty"],
  [["sandbox", "kill", "i1", "sandbox/"], "the argument [sandbox...] is empty"],
  [["sandbox", "info", ""], "the argument <sandbox> is empty"],
  [["project", "delete", "", "--force"], "the argument <project> is empty"],
  [["sandbox", "list", "--project", ""], "It is empty."],
])("an id that a shell has left empty is refused: %j", async (words, said) => {
  await expect(parse(words)).rejects.toThrow(said);
});

test("an empty argument of a program, and an optional one, is taken", async () => {
  expect((await parse(["sandbox", "exec", "i1", "--", "printf", ""])).args.rest).toEqual(["printf", ""]);
  expect((await parse(["sandbox", "create", ""])).args.first).toBe("");
  expect((await parse(["complete", "--", "sandbox", ""])).args.rest).toEqual(["sandbox", ""]);
});

test("what changes something is not done again and again", async () => {
  await expect(parse(["gc", "--watch"])).rejects.toThrow(/unknown option/);
});

test.each([
  ["sandbox", "create", "-t", "soon"],
  ["sandbox", "create", "-e", "=value"],
  ["sandbox", "create", "--cpu", "1.5"],
  ["sandbox", "list", "-o", "xml"],
  ["sandbox", "info"],
  ["sandbox", "info", "i1", "i2"],
])("`svc %s %s %s %s` is refused", async (...words) => {
  await expect(parse(words)).rejects.toThrow(/error: /);
});

test.each([
  [["sand"], ["sandbox"]],
  [["sandbox", "li"], ["list"]],
  [["sandbox", "list", "--sel"], ["--selector"]],
  [["sandbox", "list", "-o", "j"], ["json"]],
  [["fo"], ["forward"]],
  [["nothing", ""], []],
])("completion of %j is %j", (words, found) => {
  expect(candidates({ commands: COMMANDS, groups: GROUPS }, words)).toEqual({ words: found, asksForSandbox: false });
});

test("completion asks for the ids of sandboxes where a command takes one", () => {
  const asks = (...words: readonly string[]) =>
    candidates({ commands: COMMANDS, groups: GROUPS }, words).asksForSandbox;
  expect(asks("sandbox", "exec", "")).toBe(true);
  expect(asks("forward", "i")).toBe(true);
  expect(asks("sandbox", "exec", "i1", "")).toBe(false);
  expect(asks("sandbox", "list", "")).toBe(false);
});
