/** Where the keys that encrypt secrets are: a file that is read at each use, or a command. No error holds bytes of a key. */

import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keyCommand } from "../../../../orchestrator/base/keys/secrets/key-command.ts";
import { keyFile } from "../../../../orchestrator/base/keys/secrets/key-file.ts";
import { createSecretKeys } from "../../../../orchestrator/base/keys/secrets/secret-keys.ts";
import { createLog } from "../../../../shared/program/log.ts";

let folder: string;
let logged = "";
const log = createLog({
  component: "test",
  level: "trace",
  destination: { write: (line: string) => void (logged += line) },
});
beforeEach(async () => {
  logged = "";
  folder = await mkdtemp(join(tmpdir(), "svc-keys-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const dataKey = () => randomBytes(32);
const line = (name: string) => `${name} ${randomBytes(32).toString("base64")}\n`;

async function put(text: string, mode = 0o600): Promise<string> {
  const path = join(folder, "keys");
  await writeFile(path, text);
  await chmod(path, mode);
  return path;
}

describe("a key file", () => {
  test("wraps with its first key and unwraps with all, also after a change without a restart", async () => {
    const [one, two] = [line("one"), line("two")];
    const file = keyFile(await put(`# a comment\n\n${one}`));
    const bytes = dataKey();
    const before = await file.wrap(bytes);
    await put(two + one);
    const after = await file.wrap(bytes);
    expect([before.name, after.name, await file.current()]).toEqual(["one", "two", "two"]);
    for (const { name, bytes: wrapped } of [before, after]) expect(await file.unwrap(name, wrapped)).toEqual(bytes);
    await put(two);
    await expect(file.unwrap("one", before.bytes)).rejects.toThrow("has no key 'one', which a secret needs");
    await put(line("two"));
    await expect(file.unwrap("two", after.bytes)).rejects.toThrow("is another one than the key of that name before");
  });

  const key = randomBytes(32).toString("base64");
  test.each<[string, string, number, string]>([
    ["without a key", "# none\n", 0o600, "has no key"],
    ["with a short key", `one ${key.slice(0, 20)}\n`, 0o600, "line 1 of"],
    ["with a key without a name", `${key}\n`, 0o600, "line 1 of"],
    ["with two keys of one name", `one ${key}\none ${key}\n`, 0o600, "has two keys 'one'"],
    ["that every user can read", `one ${key}\n`, 0o604, "chmod it to 600"],
    ["that is very long", `#${"x".repeat(65_536)}\none ${key}\n`, 0o600, "is longer than"],
  ])("%s is refused", async (_, text, mode, words) => {
    const error = await keyFile(await put(text, mode))
      .check()
      .catch((reason: unknown) => String(reason));
    expect(error).toContain(words);
    expect(error).not.toContain(key.slice(0, 20));
  });

  test("that is not there is named", async () => {
    await expect(keyFile(join(folder, "none")).check()).rejects.toThrow(`cannot read the key file ${folder}/none`);
  });
});

/** A stand-in for a client of a key service: XOR with a fixed byte, and a log of its calls. */
async function command(script: string, timeoutMs = 20_000) {
  const path = join(folder, "client");
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o700);
  const environment = { PATH: process.env["PATH"], SVC_SEED: "hidden", DATABASE_URL: "hidden", AWS_REGION: "eu" };
  return keyCommand({ command: path, name: "kms", timeoutMs, environment });
}

describe("a key command", () => {
  test("wraps and unwraps by standard input and output, without the settings of the platform", async () => {
    const source = await command(`echo "$1 $2 $AWS_REGION [$SVC_SEED$DATABASE_URL]" >> ${folder}/calls; cat`);
    const bytes = dataKey();
    const wrapped = await source.wrap(bytes);
    expect(await source.unwrap("former", wrapped.bytes)).toEqual(bytes);
    // The data key stays unwrapped for a while, so this call asks the command for nothing.
    expect(await source.unwrap("former", wrapped.bytes)).toEqual(bytes);
    expect(await readFile(`${folder}/calls`, "utf8")).toBe("wrap kms eu []\nunwrap former eu []\n");
  });

  test.each<[string, string, string]>([
    ["fails", "cat >&2; echo hunter2 >&2; exit 3", "wrap ended with status 3"],
    ["gives nothing", "cat > /dev/null", "wrap gave no bytes"],
    ["gives too much", "head -c 100000 /dev/zero", "wrap gave more than 16384 bytes"],
  ])("that %s is refused without what it wrote", async (_, script, words) => {
    const source = await command(script);
    const error = await source.wrap(dataKey()).catch((reason: unknown) => String(reason));
    expect(error).toContain(words);
    expect(error).not.toContain("hunter2");
  });

  test("that does not end is killed with what it started", async () => {
    const source = await command("sleep 600 & sleep 600", 50);
    await expect(source.wrap(dataKey())).rejects.toThrow("took longer than 50 ms");
  });

  test("that is not there is refused", async () => {
    const source = keyCommand({ command: `${folder}/none`, name: "kms", timeoutMs: 5_000, environment: {} });
    await expect(source.wrap(dataKey())).rejects.toThrow("cannot be started");
  });
});

test("a keyring with both wraps with the command, and still opens what the file wrapped", async () => {
  const file = keyFile(await put(line("one")));
  const fromFile = createSecretKeys({ sources: { file }, log });
  const both = createSecretKeys({ sources: { file, command: await command("cat") }, log });
  const bytes = dataKey();
  const before = await fromFile?.wrap(bytes);
  expect(before?.keyId).toBe("file:one");
  expect(await both?.unwrap(before ?? { keyId: "", wrapped: "" })).toEqual(bytes);
  expect(await both?.wrap(bytes)).toMatchObject({ keyId: "command:kms" });
  expect(createSecretKeys({ sources: {}, log })).toBeUndefined();
});

test("a key that does not give back what it wrapped stores nothing, and its bytes are in no log", async () => {
  const bytes = dataKey();
  const both = createSecretKeys({ sources: { command: await command("cat; [ $1 = wrap ] || echo x") }, log });
  await expect(both?.wrap(bytes)).rejects.toThrow(
    "secrets cannot be used now: the operator finds the reason in the log",
  );
  expect(logged).toContain("gave 34 bytes in place of a data key of 32");
  for (const form of ["base64", "hex", "latin1"] as const) expect(logged).not.toContain(bytes.toString(form));
});
