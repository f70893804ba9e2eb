import { X509Certificate } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { caFor, loadAuthority } from "../../../../agent/egress/rewrite/authority.ts";
import { createLeaves } from "../../../../agent/egress/rewrite/leaves.ts";
import { OPEN } from "../../../../shared/policy/egress-policy.ts";
import { leafOf, nodeAuthority } from "../../../support/peers/transformed.ts";

const DAY_MS = 86_400_000;
const NOW = Date.now();

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "authority-"));
});
afterEach(() => rm(directory, { recursive: true }));
const file = () => join(directory, "egress-authority.pem");

test("the authority is made once, only root can read it, and the next start loads it", async () => {
  const made = await loadAuthority(directory, NOW);
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  await chmod(file(), 0o644);
  expect(await loadAuthority(directory, NOW + 3000 * DAY_MS)).toEqual(made);
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  expect(await readdir(directory)).toEqual(["egress-authority.pem"]);
  expect(new X509Certificate(made.certificate).ca).toBe(true);
});

test("the authority is replaced a year before its end, and when its file is damaged", async () => {
  const first = await loadAuthority(directory, NOW);
  const second = await loadAuthority(directory, NOW + 3300 * DAY_MS);
  expect(second.certificate).not.toBe(first.certificate);
  expect(new X509Certificate(second.certificate).subject).not.toBe(new X509Certificate(first.certificate).subject);
  await writeFile(file(), second.certificate + first.key);
  const third = await loadAuthority(directory, NOW);
  expect(third.certificate).not.toBe(second.certificate);
  await writeFile(file(), "");
  expect((await loadAuthority(directory, NOW)).key).not.toBe(third.key);
  expect(await readFile(file(), "utf8")).toContain("PRIVATE KEY");
});

test("only sandboxes with rules get the authority", () => {
  expect(caFor(OPEN, nodeAuthority)).toBe("");
  expect(caFor({ rules: [{ host: "a.test", headers: {} }] }, nodeAuthority)).toBe(nodeAuthority.certificate);
});

test("leaf certificates are shared by parallel requests, replaced after a day, and bounded", async () => {
  const clock = { at: NOW };
  const leaves = createLeaves(nodeAuthority, { now: () => clock.at, most: 2 });
  const [one, same] = await Promise.all([leaves.get("a.test"), leaves.get("a.test")]);
  expect(one).toBe(same);
  clock.at += DAY_MS - 1_000;
  expect(await leaves.get("a.test")).toBe(one);
  clock.at += 2_000;
  const later = await leaves.get("a.test");
  expect(later).not.toBe(one);
  await leaves.get("b.test");
  await leaves.get("a.test");
  await leaves.get("c.test");
  expect(await leaves.get("a.test")).toBe(later);
});

test("a certificate contains its host name also when the name is too long for the subject", async () => {
  const name = `${"a".repeat(60)}.${"b".repeat(60)}.test`;
  const leaf = new X509Certificate((await leafOf(name)).certificate);
  expect([leaf.subject, leaf.checkHost(name)]).toEqual([undefined, name]);
});
