/** Sandboxes, templates and what is stored, by `svc` on a whole platform with a fake node. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ADMIN_TOKEN, type Cluster, startCluster } from "../../support/cluster/cluster.ts";
import { builtSvc, SLOW } from "./running-svc.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
const svc = builtSvc(() => ({ SVC_API_URL: cluster.url, SVC_SANDBOX_URL: cluster.edgeUrl, SVC_API_KEY: cluster.key }));
const json = async (...words: readonly string[]) => JSON.parse(await svc.out([...words, "-o", "json"])) as unknown;

describe("a sandbox", () => {
  test("is created, listed by its metadata, shown and killed", SLOW, async () => {
    const id = await svc.out(["sandbox", "create", "base", "-m", "team=blue", "-t", "10m"]);
    expect(id).toMatch(/^[a-z0-9]+$/);
    const other = await svc.out(["sandbox", "create"]);

    const table = await svc.out(["sandbox", "list", "-l", "team=blue"]);
    expect(table).toMatch(/^ID +STATE +TEMPLATE +AGE +ENDS IN\n/);
    expect(table).toContain(id);
    expect(table).not.toContain(other);
    expect(await svc.out(["sandbox", "list", "-l", "team=blue", "-o", "name"])).toBe(`sandbox/${id}`);
    expect(await json("sandbox", "list", "-l", "team=blue")).toMatchObject([{ sandboxID: id, state: "running" }]);
    expect(await svc.out(["sandbox", "list", "-l", "team=blue", "-o", "wide", "--no-headers"])).toMatch(/team=blue$/);

    const info = await json("sandbox", "info", id);
    expect(info).toMatchObject({ sandboxID: id, metadata: { team: "blue" } });
    expect(JSON.stringify(info)).not.toContain("envdAccessToken");
    expect(await svc.out(["sandbox", "url", id, "8000"])).toContain(`http://8000-${id}.localhost:`);

    expect(await svc.out(["sandbox", "kill", "-l", "team=blue"])).toBe(`sandbox/${id} killed`);
    expect((await svc.run(["sandbox", "kill", id])).code).toBe(3);
    expect(await svc.out(["sandbox", "kill", other])).toBe(`sandbox/${other} killed`);
    expect(await svc.out(["sandbox", "info", id])).toMatch(/State: +ended/);
  });

  test("is paused, resumed, forked and rewound, and its state is shown with each", SLOW, async () => {
    const id = await svc.out(["sandbox", "create", "-m", "round=1"]);
    expect(await svc.out(["sandbox", "pause", id])).toBe(`sandbox/${id} paused`);
    expect(await svc.out(["sandbox", "list", "--state", "paused"])).toContain(id);
    expect(await svc.out(["sandbox", "resume", id, "-t", "5m"])).toBe(`sandbox/${id} running`);
    const copies = (await svc.out(["sandbox", "fork", id, "--count", "2"])).split("\n");
    expect(copies).toHaveLength(2);
    expect(await svc.out(["sandbox", "fork", id, "-o", "json"])).not.toContain("envdAccessToken");
    const snapshot = await svc.out(["snapshot", "create", id]);
    expect(await svc.out(["sandbox", "rewind", id, snapshot])).toBe(`sandbox/${id} is at ${snapshot}`);
    await svc.out(["snapshot", "delete", snapshot]);
    expect(await svc.out(["sandbox", "timeout", id, "30m"])).toContain("ends in 30m");
    const killed = await svc.run(["sandbox", "kill", id, "nosuchsandbox", ...copies]);
    expect(killed.code).toBe(3);
    expect(killed.stdout.trimEnd().split("\n")).toHaveLength(3);
    expect(killed.stderr).toContain("nosuchsandbox");
  });

  test("is paused and resumed with the others of its metadata, those in another state left out", SLOW, async () => {
    const ids = (await svc.out(["sandbox", "create", "--count", "2", "-m", "nightly=yes"])).split("\n");
    const other = await svc.out(["sandbox", "create"]);
    const [first = ""] = ids;
    await svc.out(["sandbox", "pause", first]);
    expect(await svc.out(["sandbox", "pause", "-l", "nightly=yes"])).toBe(`sandbox/${ids[1]} paused`);
    expect(await svc.run(["sandbox", "pause", "-l", "nightly=yes"])).toMatchObject({ code: 0, stdout: "" });
    expect((await svc.out(["sandbox", "resume", "-l", "nightly=yes"])).split("\n").toSorted()).toEqual(
      ids.map((id) => `sandbox/${id} running`).toSorted(),
    );
    expect((await svc.run(["sandbox", "pause"])).code).toBe(2);
    expect((await svc.run(["sandbox", "resume", first, "-l", "nightly=yes"])).code).toBe(2);
    await svc.out(["sandbox", "kill", ...ids, other]);
  });

  test("that shows up while a list is watched appears in it", SLOW, async () => {
    const watching = svc.start(["sandbox", "list", "--watch", "-l", "watched=yes", "--no-headers"]);
    const id = await svc.out(["sandbox", "create", "-m", "watched=yes"]);
    await expect.poll(watching.output, { timeout: 60_000 }).toContain(id);
    await svc.out(["sandbox", "kill", id]);
    await expect.poll(watching.errors, { timeout: 60_000 }).toContain(`sandbox/${id} is gone`);
    watching.interrupt();
    expect((await watching.ended).code).toBe(130);
  });

  test("whose metadata would drive a terminal is shown with it escaped", SLOW, async () => {
    const id = await svc.out(["sandbox", "create", "-m", "title=\u001b]0;hi\u0007\u202e", "-m", "odd=yes"]);
    const table = await svc.out(["sandbox", "list", "-l", "odd=yes", "-o", "wide"]);
    expect(table).toContain("title=\\x1b]0;hi\\x07\\u202e");
    for (const raw of ["\u001b", "\u0007", "\u202e"]) expect(table).not.toContain(raw);
    await svc.out(["sandbox", "kill", id]);
  });
});

describe("what is stored", () => {
  test("a snapshot is created under a name, listed and deleted", SLOW, async () => {
    const id = await svc.out(["sandbox", "create"]);
    const snapshot = await svc.out(["snapshot", "create", id, "--name", "kept"]);
    expect(await svc.out(["snapshot", "list"])).toContain("kept");
    expect(await svc.out(["snapshot", "list", "--sandbox", id, "-o", "name"])).toBe(`snapshot/${snapshot}`);
    await svc.out(["snapshot", "delete", snapshot]);
    expect(await svc.out(["snapshot", "list", "-o", "json"])).toBe("[]");
    await svc.out(["sandbox", "kill", id]);
  });

  test("a volume is created, found by its name and deleted", SLOW, async () => {
    const id = await svc.out(["volume", "create", "data"]);
    expect(await svc.out(["volume", "list", "--no-headers"])).toMatch(new RegExp(`^data +${id}$`));
    expect(await svc.run(["volume", "create", "data"])).toMatchObject({ code: 5 });
    expect(await svc.out(["volume", "delete", "data"])).toBe("volume/data deleted");
    expect((await svc.run(["volume", "delete", "data"])).code).toBe(3);
  });

  test("the value of a secret comes from standard input or a file, and is in no output", SLOW, async () => {
    const value = "the-value-of-the-secret";
    const file = join(svc.folder, "secret");
    writeFileSync(file, `${value}\n`);
    expect(await svc.out(["secret", "create", "OpenAI", "-m", "owner=blue"], { input: value })).toBe(
      "secret/openai created",
    );
    expect(await svc.out(["secret", "update", "openai", "--file", file])).toBe("secret/openai has version 2");
    const list = await svc.out(["secret", "list", "-o", "json"]);
    expect(JSON.parse(list)).toMatchObject([{ name: "openai", currentVersion: 2 }]);
    expect(list).not.toContain(value);
    expect((await svc.run(["secret", "create", "empty"], { input: "\n" })).code).toBe(2);
    expect(await svc.out(["secret", "delete", "openai"])).toBe("secret/openai deleted");
  });
});

describe("a key", () => {
  test("is created with scopes, works as far as they go, and is revoked", SLOW, async () => {
    const key = await svc.out(["key", "create", "ci", "--scope", "sandboxes", "--expires", "1d"]);
    const env = { SVC_API_KEY: key };
    expect((await svc.run(["sandbox", "list"], { env })).code).toBe(0);
    expect((await svc.run(["key", "create", "more"], { env })).code).toBe(4);
    expect(await svc.out(["auth", "whoami"], { env })).toContain("(the key may not read keys)");
    expect(await svc.out(["key", "list"])).toMatch(/^ci .* sandboxes /m);
    await svc.out(["key", "delete", "ci"]);
    expect((await svc.run(["auth", "whoami"], { env })).code).toBe(4);
  });

  test("is told by whoami with its source and without its middle", SLOW, async () => {
    const who = await svc.out(["auth", "whoami"], { env: { SVC_ADMIN_TOKEN: ADMIN_TOKEN } });
    expect(who).toMatch(/^Settings: +environment$/m);
    expect(who).toMatch(/^Operator: +yes$/m);
    expect(who).not.toContain(cluster.key);
  });
});
