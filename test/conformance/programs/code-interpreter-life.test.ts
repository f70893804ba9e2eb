/** The code interpreter over the life of its sandbox: pause, copies, crashes of its programs, templates on top of it. */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@e2b/code-interpreter";
import { Template } from "e2b";
import { expect, onTestFinished, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { buildTemplate, fresh } from "../../support/platform/templates.ts";
import { interpreterFrom, ownInterpreter, printed, valueOf } from "../../support/sandbox/interpreter.ts";
import { killedAfterwards } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const PYTHON_TESTS = join(import.meta.dirname, "../../../interpreter/python/tests");

/** What a program can tell apart copies by: each draws a number, and nothing else prints a blank. */
const RANDOM = "import random, numpy, ssl; print(random.random(), numpy.random.random(), ssl.RAND_bytes(8).hex())";
/** Functions that a program keeps in variables, a UUID and a number of those that Node draws ahead, and a key. */
const KEEP_JS = `const drawn = require("crypto"), { randomUUID, randomInt, randomBytes } = drawn, { random } = Math;
  randomUUID(); randomInt(9);`;
const RANDOM_JS = `console.log(random(), randomUUID(), randomInt(2 ** 40), randomBytes(8).toString("hex"),
  crypto.getRandomValues(new Uint8Array(8)).join(), webKey())`;
const KEY_JS = `var webKey = () => drawn.generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x;`;
const WITH = "(only with SVC_TEST_LANGUAGES=r,java: the template then is built for minutes)";

async function numbersOf(sandbox: Sandbox): Promise<string[]> {
  const all = [
    await printed(sandbox, RANDOM),
    await printed(sandbox, RANDOM_JS, { language: "js" }),
    await printed(sandbox, "echo $RANDOM$RANDOM$RANDOM", { language: "bash" }),
  ];
  return all.flatMap((text) => text.trim().split(" "));
}

/** Each number is another one in each of these sandboxes. */
function expectOwn(numbers: readonly (readonly string[])[]): void {
  for (const column of (numbers[0] ?? []).keys()) {
    const drawn = numbers.map((row) => row[column]);
    expect(new Set(drawn).size, drawn.join()).toBe(numbers.length);
  }
}

test("variables live over pause, fork and snapshot, on both sides, with variables and random numbers of their own", async () => {
  const source = await ownInterpreter({ envs: { OWN: "of create" } });
  const ids = "import os; (os.environ['OWN'], os.environ['E2B_SANDBOX_ID'])";
  expect(await valueOf(source, ids)).toBe(`('of create', '${source.sandboxId}')`);
  await source.runCode("x = ['live']; handle = open('/tmp/open', 'w')");
  await source.runCode(`let y = ['live']; ${KEEP_JS} ${KEY_JS}`, { language: "js" });
  // Before the copies the generators have a state.
  await source.runCode("RANDOM=1", { language: "bash" });
  await numbersOf(source);
  await source.runCode("z=live", { language: "bash" });

  await source.pause();
  const resumed = await Sandbox.connect(source.sandboxId);
  const { snapshotId } = await resumed.createSnapshot();
  onTestFinished(async () => {
    await api(platform, "DELETE", `/templates/${snapshotId}`);
  });
  const [forked] = await resumed.fork({ count: 1, timeoutMs: 600_000 });
  if (!(forked instanceof Sandbox)) throw forked ?? new Error("no fork");
  killedAfterwards(forked);
  const started = await interpreterFrom(snapshotId);

  const all = [resumed, forked, started];
  const numbers = await Promise.all(
    all.map(async (sandbox, index) => {
      await sandbox.runCode(`x.append(${index}); handle.write('${index}')`);
      expect(await valueOf(sandbox, "x")).toBe(`['live', ${index}]`);
      expect(await valueOf(sandbox, "y", { language: "js" })).toBe("[ 'live' ]");
      expect(await printed(sandbox, "echo $z", { language: "bash" })).toBe("live\n");
      expect(await valueOf(sandbox, "os.environ['E2B_SANDBOX_ID']")).toBe(sandbox.sandboxId);
      return numbersOf(sandbox);
    }),
  );
  expectOwn(numbers);
});

test("two new sandboxes draw different random numbers", async () => {
  const both = await Promise.all([ownInterpreter(), ownInterpreter()]);
  for (const one of both) await one.runCode(`${KEEP_JS} ${KEY_JS}`, { language: "js" });
  expectOwn(await Promise.all(both.map(numbersOf)));
});

test.skipIf(process.env.SVC_TEST_LANGUAGES !== "r,java")(
  `R and Java run, keep variables in a copy, and draw own random numbers there ${WITH}`,
  async () => {
    const source = await ownInterpreter();
    await source.runCode("set.seed(5); kept <- runif(1)", { language: "r" });
    await source.runCode("int kept = 9; double first = Math.random();", { language: "java" });
    const [forked] = await source.fork({ count: 1, timeoutMs: 600_000 });
    if (!(forked instanceof Sandbox)) throw forked ?? new Error("no fork");
    killedAfterwards(forked);
    const java = `Math.random() + " " + java.util.concurrent.ThreadLocalRandom.current().nextLong() + " " +
    new SplittableRandom().nextLong() + " " + UUID.randomUUID()`;
    const drawn = await Promise.all(
      [source, forked].map(async (sandbox) => {
        expect(await printed(sandbox, "cat(signif(kept, 4))", { language: "r" })).toBe("0.2002");
        expect(await valueOf(sandbox, "kept", { language: "java" })).toBe("9");
        const r = await printed(sandbox, "cat(runif(1), rnorm(1))", { language: "r" });
        const own = (await valueOf(sandbox, java.replaceAll("\n", " "), { language: "java" })) ?? "";
        return [...r.trim().split(" "), ...own.replaceAll('"', "").split(" ")];
      }),
    );
    expect(drawn[0]).toHaveLength(6);
    expectOwn(drawn);
  },
);

test("a killed kernel and a killed server come back", async () => {
  const sandbox = await ownInterpreter();
  const killed = sandbox.runCode("import os, signal; os.kill(os.getpid(), signal.SIGKILL)");
  expect((await killed).error?.name).toBeDefined();
  expect(await valueOf(sandbox, "1 + 1")).toBe("2");

  const port = "fuser 49999/tcp 2>/dev/null || ss -Hltnp 'sport = :49999' | grep -o 'pid=[0-9]*' | cut -d= -f2";
  const { stdout } = await sandbox.commands.run(port, { user: "root" });
  await sandbox.commands.run(`kill -9 ${stdout.trim()}`, { user: "root" });
  const answer = () =>
    sandbox.runCode("2 + 2", { requestTimeoutMs: 15_000 }).then(
      ({ text }) => text,
      () => "no answer",
    );
  await expect.poll(answer, { timeout: 90_000, interval: 200 }).toBe("4");
  // The kernel of the server that was killed ends a moment later.
  const kernels = async () => (await sandbox.commands.run("pgrep -fc '[l]aunch.py -f'", { user: "root" })).stdout;
  await expect.poll(kernels, { timeout: 90_000, interval: 200 }).toBe("1\n");

  // The supervisor alone: its server goes on with its kernels, and both together: another server starts.
  await sandbox.runCode("kept = 5");
  const supervisor = "'/opt/interpreter/main.js$'";
  await sandbox.commands.run(`pkill -9 -f ${supervisor}; sleep 0.1; pgrep -f ${supervisor} || true`, { user: "root" });
  expect(await valueOf(sandbox, "kept")).toBe("5");
  await sandbox.commands.run("pkill -9 -f '/opt/[i]nterpreter/main.js'", { user: "root" });
  await expect.poll(answer, { timeout: 90_000, interval: 200 }).toBe("4");
  await expect.poll(kernels, { timeout: 90_000, interval: 200 }).toBe("1\n");
});

test("a template on top inherits the interpreter, and its kernels find what pip installed", async () => {
  const name = fresh("on-top");
  // The package is made here, because no test reaches an index of packages.
  const setup = "from setuptools import setup; setup(name='svc-own', version='1.0', py_modules=['svc_own'])";
  const template = Template()
    .fromTemplate("code-interpreter-v1")
    .runCmd([
      `mkdir own && printf '%s' "${setup}" > own/setup.py && echo 'answer = 42' > own/svc_own.py`,
      "pip install --no-build-isolation --no-index ./own",
    ]);
  await buildTemplate(platform, name, template);
  const sandbox = await interpreterFrom(name);
  expect(await valueOf(sandbox, "import svc_own; svc_own.answer")).toBe("42");
});

test("charts, formats and the launch of kernels pass their own tests inside", async () => {
  const sandbox = await ownInterpreter();
  const files = (await readdir(PYTHON_TESTS)).filter((name) => name.endsWith(".py"));
  const entries = files.map(async (name) => ({
    path: `/tmp/tests/${name}`,
    data: await readFile(join(PYTHON_TESTS, name), "utf8"),
  }));
  await sandbox.files.write(await Promise.all(entries));
  const command = "PYTHONPATH=/opt/interpreter/python python3 -m unittest discover -s /tmp/tests 2>&1 || true";
  const { stdout } = await sandbox.commands.run(command, { user: "root", timeoutMs: 200_000 });
  expect(stdout.trim().split("\n").at(-1), stdout).toBe("OK");
});
