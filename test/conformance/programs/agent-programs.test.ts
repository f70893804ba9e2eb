/**
 * What agents build: packages, servers, compilers, version control, databases, archives. All programs run side by side in one
 * sandbox. agent-programs-trouble.test.ts has the programs that go wrong.
 */

import { beforeAll, describe, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { run } from "../../support/platform/programs.ts";
import {
  MIRROR_ENVS,
  publishDirectory,
  publishInstalled,
  publishPython,
  serveMirror,
} from "../../support/sandbox/package-mirror.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

openPlatform();
const sandbox = sharedSandbox({ envs: MIRROR_ENVS });

/** The start of a server beside all the other programs. */
const SLOW = { timeout: 90_000 };

/** Writes the files of a project, whose directory is the first part of each name, below the home directory. */
function write(files: Readonly<Record<string, string>>): Promise<unknown> {
  return sandbox().files.write(Object.entries(files).map(([path, data]) => ({ path, data })));
}

async function output(script: string, cwd = "/home/user"): Promise<string> {
  return (await sandbox().commands.run(`set -e; ${script}`, { cwd, timeoutMs: 180_000 })).stdout.trim();
}

/** Starts a server that runs until the sandbox ends. */
async function serve(command: string, cwd: string): Promise<void> {
  await sandbox().commands.run(`exec ${command} >/tmp/${cwd}.log 2>&1`, {
    background: true,
    cwd: `/home/user/${cwd}`,
    timeoutMs: 0,
  });
}

/** The answer of a server in the sandbox as a program outside gets it, or why there is none. */
function visit(port: number): Promise<string> {
  return run("curl", ["-sS", "--max-time", "15", `http://${sandbox().getHost(port)}/`]).catch(String);
}

describe.concurrent("packages from a registry", () => {
  beforeAll(async () => {
    await serveMirror(sandbox());
    await write({
      "python/pyproject.toml":
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n' +
        '[project]\nname = "word-count"\nversion = "1.2"\n[tool.setuptools]\npy-modules = ["word_count"]\n',
      "python/word_count.py": "def words(text):\n    return len(text.split())\n",
      "library/package.json": '{"name":"titles","version":"2.1.0","main":"titles.js"}',
      "library/titles.js": "exports.title = (text) => text.replace(/\\b./g, (first) => first.toUpperCase());\n",
    });
    await Promise.all([
      publishPython(sandbox(), "word-count", "/home/user/python"),
      publishDirectory(sandbox(), "/home/user/library"),
      publishInstalled(sandbox(), ["tsx", "esbuild", `@esbuild/${process.platform}-${process.arch}`]),
    ]);
  });

  test("a Python program uses a package that pip installed", async ({ expect }) => {
    await output("pip install -q word-count==1.2");
    expect(await output(`python3 -c 'import word_count; print(word_count.words("one two three"))'`)).toBe("3");
  });

  test("a virtual environment has packages that no other Python has", async ({ expect }) => {
    await output("python3 -m venv venv && . venv/bin/activate && pip install -q word-count && pip freeze > frozen.txt");
    expect(await output("cat frozen.txt")).toBe("word-count==1.2");
    const where = "import word_count; print(word_count.__file__)";
    expect(await output(`venv/bin/python -c '${where}'`)).toContain("/home/user/venv/lib/");
  });

  test("a Node project gets its dependency with npm install, and again with npm ci", async ({ expect }) => {
    await write({
      "site/package.json": '{"name":"site","scripts":{"start":"node site.js"},"dependencies":{"titles":"^2.0.0"}}',
      "site/site.js": 'console.log(require("titles").title("a page of text"));\n',
    });
    await output("npm install --silent && rm -r node_modules && npm ci --silent", "/home/user/site");
    expect(await output("npm start --silent", "/home/user/site")).toBe("A Page Of Text");
  });

  test("a TypeScript program runs with npx tsx", async ({ expect }) => {
    await write({
      "typed/sum.ts":
        "export enum Unit { Metre = 'm' }\nexport const sum = (...all: number[]): number => all.reduce((a, b) => a + b, 0);\n",
      "typed/main.ts": "import { sum, Unit } from './sum';\nconsole.log(`${sum(1, 2, 3)} ${Unit.Metre}`);\n",
    });
    expect(await output("npx --yes tsx main.ts", "/home/user/typed")).toBe("6 m");
  });
});

describe.concurrent("programs of an agent", () => {
  test("a Node server that watches its files answers with the code of the last edit", async ({ expect }) => {
    const server = (text: string) =>
      `require("http").createServer((_, answer) => answer.end("${text}")).listen(8101, "0.0.0.0");\n`;
    await write({ "hot/server.js": server("first") });
    await serve("node --watch server.js", "hot");
    await expect.poll(() => visit(8101), SLOW).toBe("first");
    await write({ "hot/server.js": server("second") });
    await expect.poll(() => visit(8101), SLOW).toBe("second");
    await write({ "hot/server.js": "this is no program" });
    await expect.poll(() => output("cat /tmp/hot.log"), SLOW).toContain("SyntaxError");
    await write({ "hot/server.js": server("third") });
    await expect.poll(() => visit(8101), SLOW).toBe("third");
  });

  test("a server in the background is reached from outside at the host of its port", async ({ expect }) => {
    await write({ "pages/index.html": "<h1>made by an agent</h1>" });
    await serve("python3 -m http.server 8102", "pages");
    await expect.poll(() => visit(8102), SLOW).toBe("<h1>made by an agent</h1>");
  });

  test("a C program is compiled and run, and a mistake in it is shown with its line", async ({ expect }) => {
    await write({
      "c/primes.c": `#include <math.h>
#include <stdio.h>
int main(void) {
  int found = 0;
  for (int n = 2; n <= 1000; n++) {
    int prime = 1;
    for (int d = 2; d <= sqrt(n); d++) prime &= n % d != 0;
    found += prime;
  }
  printf("%d\\n", found);
}
`,
      "c/wrong.c": "int main(void) {\n  return missing;\n}\n",
    });
    expect(await output("gcc -O2 -Wall -Werror primes.c -o primes -lm && ./primes", "/home/user/c")).toBe("168");
    expect(await output("gcc wrong.c 2>&1 || true", "/home/user/c")).toMatch(
      /wrong\.c:2:10: error: .missing. undeclared/,
    );
  });

  test("make builds a project of several files, and later only what has changed", async ({ expect }) => {
    await write({
      "make/Makefile":
        "program: main.o part.o\n\tg++ -o $@ $^\n%.o: %.cc part.h\n\tg++ -c -o $@ $<\n.PHONY: test\ntest: program\n\t./program\n",
      "make/part.h": "int part();\n",
      "make/part.cc": '#include "part.h"\nint part() { return 41; }\n',
      "make/main.cc": '#include <iostream>\n#include "part.h"\nint main() { std::cout << part() + 1 << "\\n"; }\n',
    });
    expect(await output("make -s -j2 test", "/home/user/make")).toBe("42");
    await write({ "make/part.cc": '#include "part.h"\nint part() { return 42; }\n' });
    expect(await output("make test", "/home/user/make")).toBe(
      "g++ -c -o part.o part.cc\ng++ -o program main.o part.o\n./program\n43",
    );
  });

  test("git keeps a history with branches and merges, which another clone gets over the network", async ({
    expect,
  }) => {
    const repository = "/home/user/repositories/work";
    await output(
      `git init -q -b main ${repository} && git config --global user.name Agent && git config --global user.email agent@example.com`,
    );
    await output("echo one > file && git add . && git commit -qm first && git checkout -qb feature", repository);
    await output("echo two >> file && git commit -qam second && git checkout -q main", repository);
    await output(
      "echo other > other && git add . && git commit -qm third && git merge -q --no-edit feature",
      repository,
    );
    expect(await output("cat file; git log --oneline --merges | wc -l; git status --short", repository)).toBe(
      "one\ntwo\n1",
    );

    await serve("git daemon --reuseaddr --export-all --base-path=. --port=8103", "repositories");
    await output(
      "until ss -Htln sport = :8103 | grep -q .; do sleep 0.05; done; git clone -q git://127.0.0.1:8103/work clone",
    );
    expect(await output("git -C clone log --format=%s | sort | head -3")).toBe("Merge branch 'feature'\nfirst\nsecond");
  });

  test("a database of SQLite holds what was committed, and nothing of what was rolled back", async ({ expect }) => {
    const program = `
import sqlite3
database = sqlite3.connect("shop.db")
with database:
    database.execute("create table orders (id integer primary key, item text, price real)")
    database.executemany("insert into orders (item, price) values (?, ?)", [(f"item {n}", n * 1.5) for n in range(1000)])
try:
    with database:
        database.execute("delete from orders")
        raise KeyError("changed my mind")
except KeyError:
    pass
print(*database.execute("select count(*), sum(price) from orders").fetchone())
`;
    await write({ "data/shop.py": program });
    expect(await output("python3 shop.py", "/home/user/data")).toBe("1000 749250.0");
    expect(
      await output("sqlite3 shop.db 'select item from orders where id = 7; pragma integrity_check'", "/home/user/data"),
    ).toBe("item 6\nok");
  });

  test("archives give back the files, modes and links that were put into them", async ({ expect }) => {
    await output(
      "mkdir -p packed/sub && head -c 3000000 /dev/urandom > packed/bytes && ln -s ../bytes packed/sub/link",
    );
    await output("printf '#!/bin/sh\\necho ran\\n' > 'packed/sub/ü run.sh' && chmod 750 'packed/sub/ü run.sh'");
    await output("tar -czf packed.tar.gz packed && zip -qry packed.zip packed && mkdir from-tar from-zip");
    await output("tar -xzf packed.tar.gz -C from-tar && unzip -q packed.zip -d from-zip");
    for (const from of ["from-tar", "from-zip"]) {
      expect(
        await output(`diff -r packed ${from}/packed && ${from}/packed/sub/*run.sh && readlink ${from}/packed/sub/link`),
      ).toBe("ran\n../bytes");
    }
  });

  test("data goes from one program to the next over pipes", async ({ expect }) => {
    const records = `python3 -c 'import json; [print(json.dumps({"n": n, "even": n % 2 == 0})) for n in range(10000)]'`;
    expect(await output(`${records} | jq -c 'select(.even) | .n' | rg -c '5'`)).toBe(
      String(Array.from({ length: 5_000 }, (_, index) => index * 2).filter((n) => String(n).includes("5")).length),
    );
  });
});
