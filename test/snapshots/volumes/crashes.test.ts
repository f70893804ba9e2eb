/** What an agent that is killed at any step of making, mounting or deleting a volume leaves, and what the next agent makes of it. */

import { randomUUID } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunCommand, runCommand } from "../../../agent/host/command.ts";
import { filesOf, hostVolumes } from "../../../agent/volumes/volumes.ts";

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "svc-volumes-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

class Killed extends Error {}

/** Volumes whose agent is killed before, or right after, the command with this name. */
function killedAt(command: string, when: "before" | "after") {
  const run: RunCommand = async (program, args, options) => {
    if (program === command && when === "before") throw new Killed();
    const output = await runCommand(program, args, options);
    if (program === command) throw new Killed();
    return output;
  };
  return hostVolumes({ root, run });
}

const next = () => hostVolumes({ root, run: runCommand });
const isMounted = (id: string) => existsSync(join(root, id)) && statSync(join(root, id)).dev !== statSync(root).dev;

test.each([
  ["mkfs.ext4", "before"],
  ["cp", "before"],
  ["cp", "after"],
] as const)(
  "an agent killed in the making of a volume, %s %s, leaves it to the next agent, which makes it whole",
  async (command, when) => {
    const id = randomUUID();
    if (command === "mkfs.ext4") await rm(join(root, "formatted"), { recursive: true, force: true });
    await expect(killedAt(command, when).make(id, 64)).rejects.toThrow(Killed);
    const volumes = next();
    expect(volumes.list().some((one) => one.id === id)).toBe(false);
    await volumes.make(id, 64);
    await writeFile(join(filesOf(await volumes.open(id)), "file"), "content");
    await volumes.remove(id);
    expect((await readdir(root)).filter((name) => name.startsWith(id))).toEqual([]);
  },
);

test.each(["before", "after"] as const)(
  "an agent killed in the mount of a volume, %s it, leaves it to the next agent, which mounts it once",
  async (when) => {
    const id = randomUUID();
    await next().make(id, 64);
    await expect(killedAt("mount", when).open(id)).rejects.toThrow();
    const volumes = next();
    const place = await volumes.open(id);
    await mkdir(join(place, "tmp", "left"));
    await runCommand("umount", [place]);
    // As after a reboot: what was being removed is gone, the files are there.
    expect(await readdir(join(await volumes.open(id), "tmp"))).toEqual([]);
    expect(statSync(filesOf(place))).toMatchObject({ uid: 1000, gid: 1000, mode: 0o40777 });
    await volumes.remove(id);
    expect([isMounted(id), existsSync(place)]).toEqual([false, false]);
  },
);

test.each(["before", "after"] as const)(
  "a deletion of a volume whose agent is killed, %s umount, can be repeated",
  async (when) => {
    const id = randomUUID();
    await next().make(id, 64);
    await next().open(id);
    await expect(killedAt("umount", when).remove(id)).rejects.toThrow(Killed);
    await next().remove(id);
    await next().remove(id);
    expect((await readdir(root)).filter((name) => name.startsWith(id))).toEqual([]);
    await expect(next().open(id)).rejects.toMatchObject({ code: "not_found" });
  },
);
