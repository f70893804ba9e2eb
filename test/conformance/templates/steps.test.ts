/** Each step of a definition arrives unchanged, with any characters in it, and runs once. */

import { BuildError, Template } from "e2b";
import { beforeAll, expect, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { buildTemplate, contextOf, fresh, removeAfterwards, SIZE } from "../../support/platform/templates.ts";
import { ownSandbox, refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

/** This build runs beside the other tests: it takes long, but mostly sleeps. */
const slow = {
  name: fresh("cached"),
  definition: () =>
    Template()
      .fromTemplate("base")
      .setEnvs({ A: "1" })
      .runCmd("sleep 20; cat /proc/sys/kernel/random/uuid > ~/once")
      .runCmd("cat /proc/sys/kernel/random/uuid > ~/twice"),
  build: Promise.resolve<unknown>(undefined),
};
beforeAll(() => {
  slow.build = Template.build(slow.definition(), slow.name, SIZE);
  // The test that awaits the build reports its failure.
  slow.build.catch(() => undefined);
});

const ENVS: Readonly<Record<string, readonly [given: string, arrives: string]>> = {
  PLAIN: ["value", "value"],
  RECURSIVE: ["$PLAIN and ${PLAIN}s", "value and values"],
  UNKNOWN: ["<$NOBODY>", "<>"],
  PEM: ["-----BEGIN KEY-----\nab+/c=\n-----END KEY-----\n", "-----BEGIN KEY-----\nab+/c=\n-----END KEY-----\n"],
  DOUBLE: ['say "hi"', 'say "hi"'],
  SINGLE: ["it's", "it's"],
  BACKSLASH: ["C:\\temp\\new\\\\x", "C:\\temp\\new\\\\x"],
  ESCAPED: ["\\$PLAIN", "$PLAIN"],
  LINES: ["one\n  two\n\nthree", "one\n  two\n\nthree"],
  BACKTICKS: ["`id`", "`id`"],
  SUBSTITUTION: ["$(id)", "$(id)"],
  SPACES: ["  a  b ", "  a  b "],
  SIGNS: ["a=b;c|d&e>f<g*?#!~% ☃", "a=b;c|d&e>f<g*?#!~% ☃"],
  EMPTY: ["", ""],
};
const names = Object.keys(ENVS);
const show = `python3 -c 'import json, os, sys; json.dump({n: os.environ.get(n) for n in sys.argv[1:]}, sys.stdout)' ${names.join(" ")}`;

const ODD = 'it\'s "odd" \\ `id` $(id)';

test("no step's text is taken for something else on its way into the image, the start command or a sandbox", async () => {
  const fileContextPath = await contextOf({
    "odd/it's.txt": "single",
    'odd/qu"ote.txt': "double",
    "odd/$(id) `id`.txt": "substitution",
    "odd/two  spaces ☃.txt": "spaces",
    "odd/-rf": "dash",
    "one.txt": "one",
  });
  const definition = Template({ fileContextPath })
    .fromTemplate("base")
    .setEnvs(Object.fromEntries(names.map((name) => [name, ENVS[name]?.[0] ?? ""])))
    .setWorkdir(`/srv/${ODD}`)
    .runCmd(`${show} > run.json`, { user: "root" })
    .runCmd("cat > heredoc <<'EOF'\nit's \"here\" \\n $HOME `id` # no comment\nEOF", { user: "root" })
    .runCmd(
      ["printf '%s' \"double $(echo sub) `echo tick`\" 'single $HOME \\' > quoted", "echo $((6 * 7)) >> quoted # said"],
      { user: "root" },
    )
    .copy("odd", `${ODD}/`)
    .copy("one.txt", `/srv/${ODD} 1.txt`)
    .makeDir("made it's", { user: "root" })
    .makeSymlink("made it's", "link $(id)", { user: "root" })
    .setUser("someone-else")
    .setStartCmd(`${show} > /tmp/start.json`, "test -s /tmp/start.json");
  const name = fresh("quoting");
  await buildTemplate(platform, name, definition);

  const sandbox = await ownSandbox({ template: name });
  const expected = Object.fromEntries(names.map((one) => [one, ENVS[one]?.[1]]));
  const run = async (command: string) => (await sandbox.commands.run(command)).stdout;
  expect(JSON.parse(await run(show))).toEqual(expected);
  expect(JSON.parse(await run("cat run.json"))).toEqual(expected);
  expect(JSON.parse(await run("cat /tmp/start.json"))).toEqual(expected);
  expect(await run("pwd; id -un; cat heredoc quoted")).toBe(
    `/srv/${ODD}\nsomeone-else\nit's "here" \\n $HOME \`id\` # no comment\ndouble sub ticksingle $HOME \\42\n`,
  );
  const found = await run(
    `cd "${ODD.replaceAll(/["\\`$]/g, "\\$&")}" && for file in *; do printf '%s=%s\n' "$file" "$(cat "./$file")"; done`,
  );
  expect(found.trim().split("\n").toSorted()).toEqual(
    [
      "it's.txt=single",
      'qu"ote.txt=double',
      "$(id) `id`.txt=substitution",
      "two  spaces ☃.txt=spaces",
      "-rf=dash",
    ].toSorted(),
  );
  expect(await run("cat /srv/*1.txt; readlink 'link $(id)'; ls -d made*")).toBe("onemade it's\nmade it's\n");
});

test("a user's name is no way into a shell", async () => {
  const definition = Template().fromTemplate("base").setUser("a;touch /tmp/x");
  const error = await refusal(buildTemplate(platform, fresh("user"), definition));
  expect(error).toBeInstanceOf(BuildError);
  expect(error.message).toContain("a;touch /tmp/x");
});

test.each([
  ["the second step", Template().fromTemplate("base").runCmd("true").runCmd("exit 3"), "2", /exit status 3/],
  ["its image", Template().fromImage("localhost:9/not/there:1"), "base", /cannot be pulled/],
  [
    "the start command",
    Template().fromTemplate("base").setStartCmd("exit 7", "sleep 20"),
    "finalize",
    /start command failed: exit status 7/,
  ],
])("the error of a build that fails in %s names its step", async (_where, definition, step, message) => {
  const name = fresh("fails");
  const error = await refusal(buildTemplate(platform, name, definition));
  expect(error).toBeInstanceOf(BuildError);
  expect(error.message).toMatch(message);
  const found = await api(platform, "GET", `/templates/${name}`);
  const { templateID, builds } = found.json as { templateID: string; builds: { buildID: string }[] };
  const status = await api(platform, "GET", `/templates/${templateID}/builds/${builds[0]?.buildID}/status`);
  expect(status.json).toMatchObject({ status: "error", reason: { message: expect.stringMatching(message), step } });
});

interface Seen {
  readonly ms: number;
  readonly cached: readonly string[];
  readonly content: string;
}

/**
 * Reads a template's last build by the server's own clock, from the first log line to the end, and what a sandbox of it
 * holds.
 */
async function lastBuild(name: string): Promise<Seen> {
  const shown = (await api(platform, "GET", `/templates/${name}`)).json as {
    readonly templateID: string;
    readonly builds: readonly { readonly buildID: string; readonly finishedAt: string }[];
  };
  const [build] = shown.builds;
  const status = await api(platform, "GET", `/templates/${shown.templateID}/builds/${build?.buildID}/status`);
  const { logEntries } = status.json as { logEntries: { readonly timestamp: string; readonly message: string }[] };
  const sandbox = await ownSandbox({ template: name });
  return {
    ms: Date.parse(build?.finishedAt ?? "") - Date.parse(logEntries[0]?.timestamp ?? ""),
    cached: logEntries.map(({ message }) => message).filter((line) => line.startsWith("CACHED")),
    content: (await sandbox.commands.run("cat ~/once ~/twice")).stdout,
  };
}

test("a second build of a definition does nothing twice", async () => {
  const name = slow.name;
  removeAfterwards(platform, name);
  await slow.build;
  const first = await lastBuild(name);
  await Template.build(slow.definition(), name, SIZE);
  const second = await lastBuild(name);
  expect(first.cached).toEqual([]);
  expect(second.cached).toEqual([
    expect.stringMatching(/^CACHED \[builder 1\/3\] ENV A/),
    expect.stringMatching(/^CACHED \[builder 2\/3\] RUN sleep/),
    expect.stringMatching(/^CACHED \[builder 3\/3\] RUN cat/),
  ]);
  expect(second.content).toBe(first.content);
  console.log(`first ${first.ms} ms, second ${second.ms} ms`);
});
