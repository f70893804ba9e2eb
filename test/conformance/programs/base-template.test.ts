/** What the template `base` holds: commands that agents expect, packages that the user installs, headers for add-ons. */

import { expect, test } from "vitest";
import { openPlatform } from "../../support/platform/platform.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

openPlatform();
// Without internet: what these tests need is in the template.
const sandbox = sharedSandbox({ allowInternetAccess: false });

async function output(script: string, user = "user"): Promise<string> {
  return (await sandbox().commands.run(script, { user, timeoutMs: 180_000 })).stdout.trim();
}

function write(directory: string, files: Readonly<Record<string, string>>): Promise<unknown> {
  return sandbox().files.write(
    Object.entries(files).map(([name, data]) => ({ path: `/home/user/${directory}/${name}`, data })),
  );
}

const COMMANDS =
  "node npm npx yarn python python3 pip gcc g++ make pkg-config git gh curl wget rg jq sqlite3 socat ping less lsb_release netstat";

test("every command that agents expect is there, and runs", async () => {
  expect(await output(`for name in ${COMMANDS}; do command -v $name >/dev/null || echo $name; done`)).toBe("");
  const versions =
    "node --version; npm --version; npx --version; yarn --version; python --version; pip --version; rg --version";
  const [node = "", npm, npx, yarn, python, pip, rg] = (await output(versions)).split("\n");
  expect(Number(/^v(\d+)/.exec(node)?.[1])).toBeGreaterThanOrEqual(20);
  expect(npm).toMatch(/^\d+\.\d+\.\d+$/);
  expect(npx).toBe(npm);
  expect(yarn).toMatch(/^1\.22\./);
  expect(python).toMatch(/^Python 3\./);
  expect(pip).toMatch(/^pip \d+.*python3/);
  expect(rg).toMatch(/^ripgrep/);
});

test("a package whose script links a manual beside its program installs, as Debian's Java does", async () => {
  const link = "--slave /usr/share/man/man1/own-program.1.gz own-program.1.gz /usr/lib/own/own.1.gz";
  await write("own", {
    "DEBIAN/control": "Package: own\nVersion: 1\nArchitecture: all\nMaintainer: own <own@own>\nDescription: own\n",
    "DEBIAN/postinst": `#!/bin/sh\nset -e\nupdate-alternatives --install /usr/bin/own-program own-program /usr/lib/own/own 1 ${link}\n`,
    "usr/lib/own/own": "#!/bin/sh\necho hello from a package\n",
    "usr/lib/own/own.1.gz": "a manual",
  });
  await output("chmod 755 own own/DEBIAN own/DEBIAN/postinst own/usr/lib/own/own && dpkg-deb --build own own.deb");
  // Without manuals of packages, as the recipe of the code interpreter installs them.
  await output("dpkg --path-exclude='/usr/share/man/*' --install /home/user/own.deb", "root");
  expect(await output("own-program")).toBe("hello from a package");
  expect(await output("readlink -f /usr/share/man/man1/own-program.1.gz")).toBe("/usr/lib/own/own.1.gz");
  expect(await output("ls /usr/share/man")).toBe("man1\nman2\nman3\nman4\nman5\nman6\nman7\nman8");
});

test("commands write characters beyond ASCII, and ping starts and names the rule that stops it", async () => {
  expect(await output("locale charmap; python3 -c 'import sys; print(sys.stdout.encoding)'")).toBe("UTF-8\nutf-8");
  expect(await output("locale charmap", "root")).toBe("UTF-8");
  expect(await output("ping -V")).toContain("ping from iputils");
  expect(await output("ping -c 1 127.0.0.1 2>&1 || true")).toContain("Operation not permitted");
  expect(await output("getcap -r /usr", "root")).toBe("");
});

test("/code and /usr/local belong to every user", async () => {
  expect(await output("stat -c %a /code /usr/local /usr/local/bin /usr/local/lib/node_modules")).toBe(
    "777\n777\n777\n777",
  );
});

test("a package that the user installs with npm -g is in /usr/local, and root has it too", async () => {
  await write("greet", {
    "package.json": '{"name":"greet","version":"1.0.0","bin":{"greet":"greet.js"}}',
    "greet.js": '#!/usr/bin/env node\nconsole.log("hello from npm");\n',
  });
  await output("npm pack --silent ./greet && npm install -g --silent --offline ./greet-1.0.0.tgz");
  expect(await output("command -v greet; greet")).toBe("/usr/local/bin/greet\nhello from npm");
  expect(await output("greet", "root")).toBe("hello from npm");
});

test("a package that the user installs with pip is in /usr/local, and root has it too", async () => {
  await write("hello", {
    "pyproject.toml":
      '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n' +
      '[project]\nname = "hello-agent"\nversion = "1.0"\n[project.scripts]\nhello-agent = "hello_agent:main"\n' +
      '[tool.setuptools]\npy-modules = ["hello_agent"]\n',
    "hello_agent.py": 'def main():\n    print("hello from pip")\n',
  });
  await output("pip install -q --no-index --no-build-isolation ./hello");
  expect(await output("command -v hello-agent; hello-agent")).toBe("/usr/local/bin/hello-agent\nhello from pip");
  expect(await output("python3 -c 'import hello_agent; hello_agent.main()'", "root")).toBe("hello from pip");
});

test("a venv has a Python and a pip of its own", async () => {
  expect(await output("python -m venv own && own/bin/python -c 'import sys; print(sys.prefix)'")).toBe(
    "/home/user/own",
  );
  expect(await output("own/bin/pip --version")).toContain("/home/user/own/lib/python3");
});

test("a native add-on of an npm package and one of a Python package compile without a download", async () => {
  await write("adds", {
    "package.json":
      '{"name":"adds","version":"1.0.0","main":"adds.js","gypfile":true,"scripts":{"install":"node-gyp rebuild"}}',
    "binding.gyp": '{"targets":[{"target_name":"adds","sources":["adds.c"]}]}',
    "adds.js": 'module.exports = require("./build/Release/adds.node");\n',
    "adds.c": `#include <node_api.h>
static napi_value call(napi_env env, napi_callback_info info) { napi_value v; napi_create_int32(env, 42, &v); return v; }
NAPI_MODULE_INIT() { napi_value f; napi_create_function(env, "adds", NAPI_AUTO_LENGTH, call, NULL, &f); return f; }
`,
    "answer.c": `#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(43); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "answer", "", -1, methods};
PyMODINIT_FUNC PyInit_answer(void) { return PyModule_Create(&module); }
`,
  });
  await output(
    "mkdir -p uses && cd uses && echo '{}' > package.json && npm install --silent --offline --install-links ../adds",
  );
  expect(await output("cd uses && node -p 'require(\"adds\")()'")).toBe("42");
  await output("cd adds && gcc -shared -fPIC $(python3-config --includes) answer.c -o answer.so");
  expect(await output("cd adds && python3 -c 'import answer; print(answer.answer())'")).toBe("43");
});
