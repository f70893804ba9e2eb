import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RunningInterpreter, runInterpreter } from "./running-interpreter.ts";

let interpreter: RunningInterpreter;
beforeAll(async () => {
  interpreter = await runInterpreter();
});
afterAll(() => interpreter.stop());

/** A context, in which cells run one after the other. */
const inContext = async (language: string) => {
  const { body } = await interpreter.call("POST", "/contexts", { language });
  const { id } = JSON.parse(body) as { id: string };
  return {
    text: (code: string) => interpreter.text({ code, context_id: id }),
    run: (code: string) => interpreter.run({ code, context_id: id }),
  };
};

describe("what scripts of bash begin with", () => {
  test.each([
    ["set -euo pipefail; kept=yes", "echo $kept", "yes\n"],
    ["set -e; trap 'echo failed' ERR", "echo fine", "fine\n"],
    ["exec 2>&1; set -x; set +x", "echo fine", "fine\n"],
  ])("%j lets the next cell run", async (first, next, answer) => {
    const bash = await inContext("bash");
    await bash.run(first);
    expect(await bash.text(next)).toBe(answer);
    expect(await bash.text(next)).toBe(answer);
  });

  test("set -x shows the cell's commands and none of the server's", async () => {
    const bash = await inContext("bash");
    expect(await bash.text("set -x\necho 1")).toMatch(/^\++ echo 1\n1\n$/);
    expect(await bash.text("# why\necho 2")).toMatch(/^\++ echo 2\n2\n$/);
    expect(await bash.text("{ set +x; } 2>/dev/null")).toBe("");
    expect(await bash.text("echo 3")).toBe("3\n");
  });

  test("exec >file sends what follows there, and cells end", async () => {
    const bash = await inContext("bash");
    expect(await bash.text("exec 3>&1 >log 2>&1; echo hidden; ls nothing")).not.toContain("hidden");
    expect(await bash.text("exec >&3; grep -c . log")).toBe("2\n");
  });

  test("exec > >(tee log) shows all of a cell's output in that cell", async () => {
    const bash = await inContext("bash");
    await bash.text("exec > >(sleep 0.1; tee log)");
    expect(await bash.text("seq 1 20000 | tail -n 20000")).toMatch(/^1\n2\n[^]*\n20000\n$/);
    expect(await bash.text("echo next")).toBe("next\n");
  });
});

test("a progress bar of bash is shown while it moves", async () => {
  const code = "for n in 1 2 3 4 5 6 7 8; do printf '%s\\r' $n; sleep 0.2; done; echo done";
  const pieces = (await (await inContext("bash")).run(code)).flatMap(({ type, text }) =>
    type === "stdout" ? [text] : [],
  );
  expect(pieces.join("")).toBe("1\r2\r3\r4\r5\r6\r7\r8\rdone\n");
  expect(pieces.length).toBeGreaterThan(1);
});

describe("a cell of JavaScript", () => {
  test("runs a module that fails once, and shows no other fields of an error with a cause", async () => {
    const javascript = await inContext("javascript");
    const events = await javascript.run(
      `const { mkdtempSync, writeFileSync } = await import("node:fs");
      const file = mkdtempSync(require("node:os").tmpdir() + "/svc-cell-") + "/fails.cjs";
      writeFileSync(file, 'console.log("ran"); throw Object.assign(new Error("outer", { cause: new Error("inner") }), { key: "kept" });');
      try {
        await import(file);
      } finally {
        require("node:fs").rmSync(require("node:path").dirname(file), { recursive: true });
      }`,
    );
    expect(events.flatMap(({ type, text }) => (type === "stdout" ? [text] : [])).join("")).toBe("ran\n");
    const failure = JSON.stringify(events.filter(({ type }) => type === "error"));
    expect(failure).toContain("inner");
    expect(failure).not.toContain("kept");
  });

  test("is the program that runs, with no arguments", async () => {
    const script = await inContext("javascript");
    const code = `function main() { console.log(process.argv.slice(2)) }
if (require.main === module) main();`;
    expect(await script.text(code)).toBe("[]\n");
    const isMain = `import { fileURLToPath } from "node:url";
if (process.argv[1] === fileURLToPath(import.meta.url)) main();
async function main() { await new Promise((done) => setTimeout(done, 20)); console.log("ran") }`;
    expect(await script.text(isMain)).toBe("ran\n");
  });

  test("has the folder and the address of its module", async () => {
    const script = await inContext("javascript");
    const code = `import { dirname } from "node:path"; import { fileURLToPath } from "node:url";
const __dirname = dirname(fileURLToPath(import.meta.url));
console.log(__dirname === import.meta.dirname, import.meta.resolve("fs"))`;
    expect(await script.text(code)).toBe("true node:fs\n");
    expect(await script.text("console.log(__dirname)")).toBe(`${interpreter.home}\n`);
  });

  test("finds with import(…) what import finds", async () => {
    const script = await inContext("javascript");
    const folder = join(interpreter.home, "node_modules/folder/inside");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "index.js"), "exports.a = 1;");
    writeFileSync(join(interpreter.home, "data.json"), '{"b": 2}');
    // Folders and JSON, which import alone does not take; global packages are found in the same way.
    const code = `const { a } = await import("folder/inside");
console.log(a, (await import("./data.json")).default.b, await import("none").catch((error) => error.code))`;
    expect(await script.text(code)).toBe("1 2 ERR_MODULE_NOT_FOUND\n");
  });

  test("says why it failed when only an error inside does", async () => {
    const script = await inContext("javascript");
    const error = async (code: string) => (await script.run(code)).find(({ type }) => type === "error")?.["traceback"];
    expect(await error('await fetch("http://127.0.0.1:1")')).toMatch(/fetch failed[^]*(ECONNREFUSED|bad port)/);
    const nested = await error('throw new Error("outside", { cause: new Error("inside") })');
    expect(nested).toContain("inside");
    expect(nested).not.toMatch(/javascript\.js|node:vm/);
    expect(await error('await Promise.any([Promise.reject(new Error("one"))])')).toContain("Error: one");
  });

  test("says which promise failed though nothing waited for it", async () => {
    const script = await inContext("javascript");
    const code = 'async function main() { throw new Error("boom") }\nconst started = main();\n5';
    expect(await script.text(code)).toMatch(/^5Uncaught Error: boom\n/);
    expect(await script.text("main(); undefined")).toMatch(/^Uncaught Error: boom\n/);
    expect(await script.text('await Promise.reject(new Error("boom")).catch(() => 6)')).toBe("6");
  });

  test("that writes into the pipe of its worker costs the server nothing", async () => {
    const script = await inContext("javascript");
    expect(await script.text('require("fs").writeSync(4, "what\\n5\\n"); console.log(1)')).toBe("1\n");
    expect(await script.text("console.log(2)")).toBe("2\n");
  });

  test("passes on bytes that end inside of a character", async () => {
    const code = `for (const byte of Buffer.from("é😀!")) process.stdout.write(Uint8Array.of(byte))`;
    expect(await (await inContext("javascript")).text(`${code}; undefined`)).toBe("é😀!");
  });
});

test("types that a cell of TypeScript imports as values are no error, other names are one of JavaScript", async () => {
  const code =
    'import { EventEmitter, EventMap } from "node:events"\nconst e: EventMap = new EventEmitter(); console.log(typeof e)';
  expect(await (await inContext("typescript")).text(code)).toBe("object\n");
  expect(await (await inContext("javascript")).text('import { EventMap } from "node:events"')).toBe("SyntaxError");
});
