/** The code interpreter through its published package: languages, results, streams, errors and contexts. */

import type { Result } from "@e2b/code-interpreter";
import { describe, expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { printed, sharedInterpreter, valueOf } from "../../support/sandbox/interpreter.ts";
import { refusal } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const sandbox = sharedInterpreter();

/** The only result of code that must not fail. */
async function resultOf(code: string): Promise<Result> {
  const { results, error } = await sandbox().runCode(code);
  expect(error, error?.traceback).toBeUndefined();
  expect(results).toHaveLength(1);
  return results[0] as Result;
}

describe("languages", () => {
  test("Python answers with the last value, keeps state and counts its runs", async () => {
    const first = await sandbox().runCode("x = 41");
    const second = await sandbox().runCode("x += 1; x");
    expect([first.text, second.text, second.results[0]?.isMainResult]).toEqual([undefined, "42", true]);
    expect(second.executionCount).toBe((first.executionCount ?? 0) + 1);
    expect(await valueOf(sandbox(), "'a quoted text'")).toBe("a quoted text");
    expect(await printed(sandbox(), "!echo from a shell; pwd")).toBe("from a shell\r\n/home/user\r\n");
  });

  test("JavaScript and TypeScript keep their own state and await what is last", async () => {
    expect(await printed(sandbox(), "const a = 40; console.log(a + 2)", { language: "js" })).toBe("42\n");
    expect(await valueOf(sandbox(), "await Promise.resolve(a + 2)", { language: "javascript" })).toBe("42");
    const code =
      "import { join } from 'path';\nconst n: number = 6;\nfunction f(k: number): string { return join('a', String(k)) }\nf(n)";
    expect(await valueOf(sandbox(), code, { language: "ts" })).toBe("a/6");
    expect((await sandbox().runCode("a", { language: "ts" })).error?.name).toBe("ReferenceError");
  });

  test("bash keeps its variables, and a cell fails with the exit code of its last command", async () => {
    await sandbox().runCode("name=world; cd /tmp", { language: "bash" });
    expect(await printed(sandbox(), "echo hello $name; pwd", { language: "bash" })).toBe("hello world\n/tmp\n");
    expect((await sandbox().runCode("false", { language: "bash" })).error?.value).toContain("1");
  });

  test("an unknown language is refused", async () => {
    expect((await refusal(sandbox().runCode("1", { language: "cobol" }))).message).toMatch(/500|cobol/);
  });
});

describe("results", () => {
  test("a figure has a picture, a text, and a chart whose floats are floats", async () => {
    const figure = await resultOf(
      "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3.0, 5.5], label='v')\nplt.xlabel('t (s)')\nplt.show()",
    );
    expect(figure.png?.startsWith("iVBOR")).toBe(true);
    expect(figure.isMainResult).toBe(false);
    expect(figure.chart).toMatchObject({
      type: "line",
      x_label: "t (s)",
      x_unit: "s",
      elements: [
        {
          label: "v",
          points: [
            [1, 3],
            [2, 5.5],
          ],
        },
      ],
    });
    expect(figure.formats()).toEqual(["png"]);
  });

  test("a data frame has its columns, its table and its text", async () => {
    const frame = await resultOf(
      "import pandas as pd\npd.DataFrame({'n': [1.0, None], 'at': pd.to_datetime(['2024-01-02', '2024-01-03'])})",
    );
    expect(frame.data).toEqual({ n: [1, null], at: ["2024-01-02T00:00:00", "2024-01-03T00:00:00"] });
    expect(frame.html).toContain("<table");
    expect(frame.text).toContain("2024-01-02");
  });

  test.each([
    ["HTML", "from IPython.display import HTML\nHTML('<b>ü</b>')", { html: "<b>ü</b>" }],
    ["Markdown", "from IPython.display import Markdown\nMarkdown('# T')", { markdown: "# T" }],
    [
      "SVG",
      "from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')",
      { svg: expect.stringContaining("<svg") },
    ],
    ["LaTeX", "from IPython.display import Latex\nLatex('$x$')", { latex: "$x$" }],
    ["JavaScript", "from IPython.display import Javascript\nJavascript('1')", { javascript: "1" }],
    ["JSON", "{'a': [1.5, None, float('nan')], 'b': {1: True}}", { json: { a: [1.5, null, null], b: { 1: true } } }],
    ["a picture", "from PIL import Image\nImage.new('RGB', (2, 2))", { png: expect.stringMatching(/^iVBOR/) }],
    ["another type", "display({'application/x-own': 'mine', 'text/plain': 't'}, raw=True)", { text: "t" }],
  ])("%s", async (_what, code, wanted) => {
    expect(await resultOf(code)).toMatchObject(wanted);
  });

  test("what is displayed comes in its order, and the value of the cell last", async () => {
    const { results } = await sandbox().runCode("display(1)\ndisplay('two')\n3");
    expect(results.map(({ text, isMainResult }) => [text, isMainResult])).toEqual([
      ["1", false],
      ["two", false],
      ["3", true],
    ]);
  });
});

describe("streams and errors", () => {
  test("callbacks hear output while the code runs, in its order and to the last sign", async () => {
    const heard: string[] = [];
    // The code goes on only when its first line was heard.
    const wait = "while not os.path.exists('/tmp/heard'): time.sleep(0.05)";
    const execution = await sandbox().runCode(
      `import os, sys, time\nprint('é漢😀\\x85\\u2028', flush=True)\n${wait}\nprint('later', file=sys.stderr)\n'done'`,
      {
        onStdout: async ({ line }) => {
          heard.push(`out ${line}`);
          await sandbox().files.write("/tmp/heard", "");
        },
        onStderr: ({ line }) => void heard.push(`err ${line}`),
        onResult: ({ text }) => void heard.push(`result ${text}`),
      },
    );
    expect(heard).toEqual(["out é漢😀\u0085\u2028\n", "err later\n", "result done"]);
    expect(execution.logs).toEqual({ stdout: ["é漢😀\u0085\u2028\n"], stderr: ["later\n"] });
  });

  test("an error has its class, its message and a traceback without colours", async () => {
    const errors: string[] = [];
    const { error, logs } = await sandbox().runCode("print('before')\ndef f():\n    raise ValueError('no ü')\nf()", {
      onError: ({ name }) => void errors.push(name),
    });
    expect(error).toMatchObject({ name: "ValueError", value: "no ü" });
    expect(error?.traceback).toMatch(/line 3, in f/i);
    expect(error?.traceback).not.toContain("\u001B");
    expect([errors, logs.stdout]).toEqual([["ValueError"], ["before\n"]]);
    expect((await sandbox().runCode("input()")).error?.name).toBe("StdinNotImplementedError");
    const thrown = (await sandbox().runCode("throw new TypeError('js')", { language: "js" })).error;
    expect(thrown).toMatchObject({ name: "TypeError", value: "js" });
  });

  test("ten megabytes of output arrive whole", async () => {
    const text = await printed(sandbox(), "for i in range(100_000): print(f'{i:0104d}')", { timeoutMs: 180_000 });
    expect(text.length).toBe(10_500_000);
    expect(text.endsWith("99999\n")).toBe(true);
  });

  test("a run that takes too long is given up by the client and interrupted inside, and its state stays", async () => {
    const context = await sandbox().createCodeContext();
    await sandbox().runCode("kept = 'kept'", { context });
    const endless = sandbox().runCode("import time\nwhile True: time.sleep(1)", { context, timeoutMs: 1_000 });
    expect((await refusal(endless)).name).toBe("TimeoutError");
    const started = performance.now();
    expect(await valueOf(sandbox(), "kept", { context })).toBe("kept");
    console.log(
      `the next run was answered ${Math.round(performance.now() - started)} ms after the one that was given up`,
    );
    await sandbox().removeCodeContext(context);
  });
});

describe("contexts", () => {
  test("five contexts work side by side, each with its own state and directory", async () => {
    const contexts = await Promise.all(Array.from({ length: 5 }, () => sandbox().createCodeContext({ cwd: "/tmp" })));
    expect(new Set(contexts.map(({ id }) => id)).size).toBe(5);
    // Each waits for the files of all others, so they end only where they run at the same time.
    const run = (index: number) =>
      `import glob, os, time\nopen('/tmp/side-${index}', 'w').close()\n` +
      `while len(glob.glob('/tmp/side-*')) < 5: time.sleep(0.05)\nn = ${index}\n(n, os.getcwd())`;
    const values = await Promise.all(contexts.map((context, index) => valueOf(sandbox(), run(index), { context })));
    expect(values).toEqual([0, 1, 2, 3, 4].map((index) => `(${index}, '/tmp')`));
    expect(await Promise.all(contexts.map((context) => valueOf(sandbox(), "n", { context })))).toEqual([
      "0",
      "1",
      "2",
      "3",
      "4",
    ]);
    const listed = await sandbox().listCodeContexts();
    expect(listed).toEqual(expect.arrayContaining(contexts));
    expect(listed.slice(0, 2).map(({ language, cwd }) => [language, cwd])).toEqual([
      ["python", "/home/user"],
      ["javascript", "/home/user"],
    ]);
    await Promise.all(contexts.map((context) => sandbox().removeCodeContext(context)));
    expect((await sandbox().listCodeContexts()).map(({ id }) => id)).not.toContain(contexts[0]?.id);
    const [first] = contexts;
    if (first === undefined) throw new Error("no context");
    const gone = await refusal(sandbox().runCode("1", { context: first }));
    expect([gone.name, gone.message]).toEqual(["NotFoundError", expect.stringContaining(first.id)]);
  });

  test("a restart of a context loses its state and keeps id and directory", async () => {
    const context = await sandbox().createCodeContext({ cwd: "/tmp", language: "python" });
    await sandbox().runCode("lost = 1", { context });
    await sandbox().restartCodeContext(context.id);
    expect((await sandbox().runCode("lost", { context })).error?.name).toBe("NameError");
    expect(await valueOf(sandbox(), "import os; os.getcwd()", { context })).toBe("/tmp");
    await sandbox().removeCodeContext(context.id);
  });
});

test("a raw client of the shared host gets ASCII lines in which a float is a float, first the count and last the end", async () => {
  const response = await fetch(`${platform.sandboxUrl}/execute?source=test`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "e2b-sandbox-id": sandbox().sandboxId,
      "e2b-sandbox-port": "49999",
    },
    body: JSON.stringify({ code: "[5.0, 'é\\u2028', 2**60]", context_id: null, language: null, env_vars: null }),
    signal: AbortSignal.timeout(90_000),
  });
  const text = await response.text();
  expect([response.status, response.headers.get("content-encoding")]).toEqual([200, null]);
  expect(text).toMatch(/^[\x20-\x7E\n]+$/);
  expect(text).toContain(`"json":[5.0,"\\u00e9\\u2028",${2n ** 60n}]`);
  const types = text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { type: string }).type);
  expect(types, text).toEqual(["number_of_executions", "result", "end_of_execution"]);
});

test("variables of a run are set for it alone, in every language, whatever they hold", async () => {
  const envs = { SVC_RUN: `it's "ü" $HOME\n\\` };
  const asked = {
    python: "import os; print(os.environ.get('SVC_RUN'), end='')",
    js: "process.stdout.write(process.env.SVC_RUN ?? 'None')",
  };
  for (const [language, code] of Object.entries(asked)) {
    expect(await printed(sandbox(), code, { language, envs })).toBe(envs.SVC_RUN);
    expect(await printed(sandbox(), code, { language })).toBe("None");
  }
  const bash = 'printf "%s" "${SVC_RUN-None}" | base64 -w0';
  const answers = [
    await printed(sandbox(), bash, { language: "bash", envs }),
    await printed(sandbox(), bash, { language: "bash" }),
  ];
  expect(answers.map((text) => Buffer.from(text.trim(), "base64").toString())).toEqual([envs.SVC_RUN, "None"]);
});
