/** Links that a user plants do not lead envd, which runs as root, to files that the user cannot reach. */

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { as, sharedEnvd } from "../running-envd.ts";

const { envd, clients } = sharedEnvd();

/** A directory of root's, with one file that everybody may read and one that only root may read. */
const place = () => join(envd.root, "srv");
beforeEach(() => {
  execFileSync("sh", ["-c", `rm -rf ${place()} ${envd.home}/*; mkdir ${place()}; echo root > ${place()}/open`]);
  execFileSync("sh", ["-c", `echo secret > ${place()}/secret; chmod 600 ${place()}/secret`]);
});

const asUser = (script: string) => execFileSync("sh", ["-c", `cd ${envd.home} && ${script}`], { uid: 1000, gid: 1000 });
const upload = (path: string, body = "uploaded") =>
  fetch(`${envd.url}/files?username=user&path=${encodeURIComponent(path)}`, {
    method: "POST",
    headers: { "content-type": "application/octet-stream" },
    body,
  });
const compose = (sources: string[], destination: string) =>
  fetch(`${envd.url}/files/compose?username=user`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ source_paths: sources, destination }),
  });
const owner = (path: string) => statSync(path).uid;

test("a file of root's behind a user's link is neither written nor given away", async () => {
  asUser(`ln -s ${place()}/open link`);
  expect((await upload("link")).status).toBe(403);
  expect([readFileSync(join(place(), "open"), "utf8"), owner(join(place(), "open"))]).toEqual(["root\n", 0]);
});

test.each(["d/new", "d/x/y/new"])(
  "nothing is made at %s when d is a user's link to a directory of root's",
  async (path) => {
    asUser(`ln -s ${place()} d`);
    expect((await upload(path)).status).toBe(403);
    expect(existsSync(join(place(), "new")) || existsSync(join(place(), "x"))).toBe(false);
    await expect(clients.filesystem.makeDir({ path: "d/made" }, as("user"))).rejects.toThrow(/permission denied/);
    expect(existsSync(join(place(), "made"))).toBe(false);
  },
);

test("a link of a user's whose target is still to be made makes nothing in a directory of root's", async () => {
  asUser(`ln -s ${place()}/later link`);
  expect((await upload("link")).status).toBe(403);
  expect(existsSync(join(place(), "later"))).toBe(false);
});

test("composing gives a user no file that only root may read", async () => {
  asUser(`ln -s ${place()}/secret a; ln -s ${place()}/open b; echo own > c`);
  expect((await compose(["a", "c"], "all")).status).toBe(403);
  expect(existsSync(join(envd.home, "all"))).toBe(false);
  expect((await compose(["b", "c"], "all")).status).toBe(200);
  expect(readFileSync(join(envd.home, "all"), "utf8")).toBe("root\nown\n");
});

test("a user's links work for files of the same user, and root's links for any file", async () => {
  asUser("mkdir real; echo old > real/file; ln -s real dir; ln -s real/file link; ln -s real/later later");
  execFileSync("ln", ["-s", place(), join(envd.home, "roots")]);
  for (const [path, real] of [
    ["link", join(envd.home, "real/file")],
    ["dir/new", join(envd.home, "real/new")],
    ["dir/x/new", join(envd.home, "real/x/new")],
    ["later", join(envd.home, "real/later")],
    ["roots/open", join(place(), "open")],
    ["roots/new", join(place(), "new")],
    [join(place(), "plain"), join(place(), "plain")],
  ] as const) {
    expect([path, (await upload(path, path)).status]).toEqual([path, 200]);
    expect([readFileSync(real, "utf8"), owner(real)]).toEqual([path, 1000]);
  }
});

test("a directory that is exchanged for a link again and again never leads to root's", async () => {
  asUser("mkdir d0");
  const script = `cd ${envd.home} && while :; do mv -T d0 d && mv -T d d0; ln -sfn ${place()} d; rm -f d; done 2>/dev/null`;
  const { spawn } = await import("node:child_process");
  const exchanging = spawn("sh", ["-c", script], { uid: 1000, gid: 1000, stdio: "ignore" });
  try {
    for (let round = 0; round < 200; round += 1) await upload("d/raced", `round ${round}`);
  } finally {
    exchanging.kill("SIGKILL");
  }
  expect(existsSync(join(place(), "raced")) ? owner(join(place(), "raced")) : 0).toBe(0);
});

const named = as("user");
const read = (path: string) => fetch(`${envd.url}/files?username=user&path=${encodeURIComponent(path)}`);

test("a download through a user's link gives files that every user may read, and none that only root may read", async () => {
  asUser(`ln -s ${place()}/secret a; ln -s ${place()}/open b; ln -s ${place()} d; echo own > c; ln -s c own`);
  for (const path of ["a", "d/secret"]) expect([path, (await read(path)).status]).toEqual([path, 403]);
  for (const [path, content] of [
    ["b", "root\n"],
    ["d/open", "root\n"],
    ["own", "own\n"],
    [join(place(), "secret"), "secret\n"],
  ] as const)
    expect([path, await (await read(path)).text()]).toEqual([path, content]);
});

test("a directory that only root may read is neither listed nor watched through a user's link", async () => {
  execFileSync("sh", ["-c", `mkdir -m 700 ${place()}/private; touch ${place()}/private/name`]);
  asUser(`ln -s ${place()}/private closed; ln -s ${place()} d; mkdir own; touch own/f; ln -s own mine`);
  const list = async (path: string) =>
    (await clients.filesystem.listDir({ path, depth: 1 }, named)).entries.map(({ name }) => name);
  for (const path of ["closed", "d/private"]) {
    await expect(list(path)).rejects.toThrow(/permission denied/);
    await expect(clients.filesystem.createWatcher({ path }, named)).rejects.toThrow(/permission denied/);
  }
  expect(await list("d")).toEqual(["open", "private", "secret"]);
  expect(await list("mine")).toEqual(["f"]);
  expect(await list(join(place(), "private"))).toEqual(["name"]);
});

test("nothing is removed or moved in a directory of root's that a user's link leads to", async () => {
  asUser(`ln -s ${place()} d; echo own > c`);
  await expect(clients.filesystem.remove({ path: "d/open" }, named)).rejects.toThrow(/permission denied/);
  await expect(clients.filesystem.move({ source: "d/open", destination: "mine" }, named)).rejects.toThrow(
    /permission denied/,
  );
  await expect(clients.filesystem.move({ source: "c", destination: "d/new" }, named)).rejects.toThrow(
    /permission denied/,
  );
  expect([readdirSync(place()), readdirSync(envd.home)]).toEqual([
    ["open", "secret"],
    ["c", "d"],
  ]);
  // The user owns the link itself.
  await clients.filesystem.move({ source: "d", destination: "e" }, named);
  await clients.filesystem.remove({ path: "e" }, named);
  expect([readdirSync(place()), readdirSync(envd.home)]).toEqual([["open", "secret"], ["c"]]);
});

test("move and remove follow a user's links to the user's own files, and root's links to any file", async () => {
  asUser("mkdir -p real/sub; echo 1 > real/sub/a; echo 2 > real/b; ln -s real dir");
  execFileSync("ln", ["-s", place(), join(envd.home, "roots")]);
  await clients.filesystem.move({ source: "dir/b", destination: "dir/sub/b" }, named);
  await clients.filesystem.move({ source: "dir/sub", destination: "roots/sub" }, named);
  expect(readdirSync(join(place(), "sub"))).toEqual(["a", "b"]);
  await clients.filesystem.remove({ path: "roots/sub" }, named);
  expect(existsSync(join(place(), "sub"))).toBe(false);
});

test.each(["remove", "move to another file system"])(
  "%s of a directory that is exchanged for a link meanwhile touches nothing of root's",
  async (how) => {
    execFileSync("sh", ["-c", `mkdir ${place()}/x; echo root > ${place()}/x/kept`]);
    const other = mkdtempSync("/dev/shm/svc-links-");
    const script = `cd ${envd.home} && while :; do mkdir -p t/x; echo own > t/x/own; mv -T t/x t/y; ln -s ${place()}/x t/x; rm -rf t/x t/y; done 2>/dev/null`;
    const { spawn } = await import("node:child_process");
    const exchanging = spawn("sh", ["-c", script], { uid: 1000, gid: 1000, stdio: "ignore" });
    try {
      for (let round = 0; round < 150; round += 1) {
        const acting =
          how === "remove"
            ? clients.filesystem.remove({ path: "t" }, named)
            : clients.filesystem.move({ source: "t", destination: join(other, `${round}`) }, named);
        await acting.catch(() => undefined);
      }
      expect(readFileSync(join(place(), "x/kept"), "utf8")).toBe("root\n");
      expect(execFileSync("find", [other, "-name", "kept"], { encoding: "utf8" })).toBe("");
    } finally {
      exchanging.kill("SIGKILL");
      rmSync(other, { recursive: true, force: true });
    }
  },
);
