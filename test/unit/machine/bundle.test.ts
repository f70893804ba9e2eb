/** The archive of `svc debug bundle`: parts fail alone, and it is whole or not there. */

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { readInstance } from "../../../machine/base/instance.ts";
import { writeBundle } from "../../../machine/bundle/bundle.ts";
import { knownValues } from "../../../machine/bundle/known-values.ts";
import { within } from "../../../machine/bundle/parts.ts";
import { redactor } from "../../../machine/bundle/redact.ts";

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-bundle-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "bundle.tar.gz");
}

const says = (name: string, text: string) => ({ name, limitMs: 50_000, make: () => Promise.resolve(text) });

test("a part that fails or hangs is left out with its reason, and the others are there without secrets", async () => {
  const path = place();
  const secret = "s3cr3t-value-of-a-machine";
  const parts = await writeBundle({
    parts: [
      says("one.txt", `token=${secret}`),
      { name: "broken.txt", limitMs: 50_000, make: () => Promise.reject(new Error(`cannot read ${secret}`)) },
      { name: "hangs.txt", limitMs: 20, make: () => new Promise<string>(() => undefined) },
      says("last.txt", "the last one"),
    ],
    redact: redactor([secret]),
    path,
  });
  expect(parts.map(({ name, problem }) => [name, problem])).toEqual([
    ["one.txt", undefined],
    ["broken.txt", "cannot read [redacted]"],
    ["hangs.txt", "not done within 0.02 s"],
    ["last.txt", undefined],
  ]);
  const text = gunzipSync(readFileSync(path)).toString("utf8");
  for (const name of ["one.txt", "broken.txt.failed", "hangs.txt.failed", "last.txt", "manifest.json"]) {
    expect(text).toContain(`svc-debug/${name}`);
  }
  expect(text).toContain("the last one");
  expect(text).not.toContain(secret);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

const plain = (text: string) => text;

test("of two archives of one name the later one is refused, and nothing of it is left", async () => {
  const path = place();
  const made = await Promise.allSettled([
    writeBundle({ parts: [says("a", "b")], redact: plain, path }),
    writeBundle({ parts: [says("a", "b")], redact: plain, path }),
  ]);
  expect(made.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  const [reason] = made.flatMap((one) => (one.status === "rejected" ? [String(one.reason)] : []));
  expect(reason).toContain(`there is a file ${path} already`);
  expect(readdirSync(dirname(path))).toEqual(["bundle.tar.gz"]);
});

test("an archive that the disk does not take says the disk's reason", async () => {
  const path = join(dirname(place()), "no-such-folder/bundle.tar.gz");
  const slow = { name: "b", limitMs: 50_000, make: () => new Promise<string>((done) => setTimeout(done, 50, "late")) };
  for (const part of [says("a", "b"), slow]) {
    await expect(writeBundle({ parts: [part, says("c", "d")], redact: plain, path })).rejects.toThrow(/ENOENT/);
  }
});

test("a bundle that is ended makes no further part and leaves no archive", async () => {
  const path = place();
  const ended = new AbortController();
  const parts = [
    {
      name: "a",
      limitMs: 50_000,
      make: () => {
        ended.abort(new Error("ended"));
        return Promise.resolve("a");
      },
    },
    { name: "b", limitMs: 50_000, make: () => Promise.reject(new Error("it was made")) },
  ];
  const done: string[] = [];
  const onPart = ({ name }: { readonly name: string }) => void done.push(name);
  const bundle = writeBundle({ parts, redact: plain, path, onPart, signal: ended.signal });
  await expect(bundle).rejects.toThrow("ended");
  expect(done).toEqual(["a"]);
  expect(readdirSync(dirname(path))).toEqual([]);
});

test("a log is cut to its window by whole entries", () => {
  const line = (time: string, msg: string) => `{"level":30,"time":"${time}","msg":"${msg}"}`;
  const text = [
    line("2026-11-20T11:00:00.000Z", "before"),
    "a stack of it",
    line("2026-11-20T12:00:00.000Z", "in"),
    "a stack of that",
    line("2026-11-20T12:30:00.000Z", "later"),
  ].join("\n");
  const left = within(text, Date.parse("2026-11-20T11:30:00Z"));
  expect(left).not.toContain("before");
  expect(left).not.toContain("a stack of it");
  expect(left.split("\n").slice(0, 2)).toEqual([line("2026-11-20T12:00:00.000Z", "in"), "a stack of that"]);
});

test("the lines of keys are known values: of files beside the settings, of the platform's own certificate, and of files that settings name", () => {
  const root = dirname(place());
  const config = join(root, "etc/svc");
  mkdirSync(join(config, "site"), { recursive: true });
  const line = (letter: string) => letter.repeat(64);
  const pem = (letter: string) => `-----BEGIN PRIVATE KEY-----\n${line(letter)}\n-----END PRIVATE KEY-----\n`;
  writeFileSync(join(config, "secrets.key"), line("a"));
  writeFileSync(join(config, "site/authority.key"), pem("b"));
  writeFileSync(join(config, "site/key.pem"), pem("c"));
  writeFileSync(join(config, "site/cert.pem"), pem("d").replaceAll("PRIVATE KEY", "CERTIFICATE"));
  const named = join(root, "of-certbot.pem");
  writeFileSync(named, pem("e"));
  const settings = `SVC_TLS_KEY_FILE=${named}\nSVC_TLS_CERT_FILE=${join(config, "site/cert.pem")}\n`;
  writeFileSync(join(config, "orchestrator.env"), settings);
  expect(knownValues(readInstance("", root)).toSorted()).toEqual(["a", "b", "c", "e"].map(line));
});
