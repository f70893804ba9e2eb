/** What svc-runc says about a restore that ends without an error in CRIU's log, with another program in runc's place. */

import { spawnSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const SCRIPT = join(import.meta.dirname, "../../../scripts/host/runtime/svc-runc");
const RUN_DIRECTORY = "/run/svc-wordstest";
const ANNOTATIONS = join(RUN_DIRECTORY, "containers");

/**
 * @param restore shell commands that stand for `runc restore`; `$log` is the file of runc's log
 * @param limit of the restore, in place of the script's own; seconds
 */
async function restoreWith(restore: string, limit?: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-words-"));
  const id = `words-${process.pid}`;
  const annotations = join(ANNOTATIONS, id);
  onTestFinished(async () => {
    await rm(directory, { recursive: true, force: true });
    await rm(RUN_DIRECTORY, { recursive: true, force: true });
  });
  const [root, images, bundle, log] = ["root", "images", "bundle", "log"].map((name) => join(directory, name));
  if (root === undefined || images === undefined || bundle === undefined || log === undefined)
    throw new Error("unnamed");
  for (const one of [root, images, bundle, annotations]) await mkdir(one, { recursive: true });
  await writeFile(join(images, "inventory.img"), "");
  await writeFile(join(bundle, "config.json"), JSON.stringify({ root: { path: root } }));
  await symlink(images, join(annotations, "restore"));
  const runc = join(directory, "runc");
  // The commands before and after the restore, such as `delete`, are not the ones that are tested.
  await writeFile(runc, `#!/bin/sh\nlog=${log}\ncase " $* " in *" restore "*) ;; *) exit 0 ;; esac\n${restore}\n`);
  await chmod(runc, 0o755);
  const script = join(directory, "svc-runc");
  const text = await readFile(SCRIPT, "utf8");
  await writeFile(script, limit === undefined ? text : text.replace(/^restore_limit=\d+$/m, `restore_limit=${limit}`));
  const args = ["--root", directory, "--log", log, "--log-format", "json", "create", "--bundle", bundle, id];
  const env = { PATH: `${directory}:${process.env.PATH ?? ""}` };
  const { stderr, status } = spawnSync("sh", [script, ...args], { env, encoding: "utf8" });
  expect(status).toBe(1);
  return stderr.slice(stderr.indexOf("failed: ")).trim();
}

test.each([
  [
    "runc's last error and its exit status",
    `printf '{"level":"error","msg":"an earlier one","time":"t"}\\n{"level":"error","msg":"criu failed: type NOTIFY errno 0\\\\nlog file: x","time":"t"}\\n' >>"$log"; exit 3`,
    "failed: CRIU ended in the middle of it, runc with exit status 3: criu failed: type NOTIFY errno 0",
  ],
  [
    "the words of svc-confine before those of runc",
    `printf '{"level":"error","msg":"EOF","time":"t"}\\n' >>"$log"; echo "svc-confine: /a/b: Permission denied" >>"$SVC_CONFINE_LOG"; exit 1`,
    "failed: CRIU ended in the middle of it, runc with exit status 1: svc-confine: /a/b: Permission denied",
  ],
  [
    "the signal that ended runc",
    "kill -KILL $$",
    "failed: CRIU ended in the middle of it, runc with signal 9: nothing more is known",
  ],
])("the error of a restore has %s", async (_name, restore, said) => {
  expect(await restoreWith(restore)).toBe(said);
});

test("a restore that hangs is ended at the script's own limit, with the words that the agent knows", async () => {
  const hangs = "sleep 10 >/dev/null 2>&1 & wait";
  expect(await restoreWith(hangs, 1)).toBe("failed: the restore did not end within its limit of 1 s");
});
