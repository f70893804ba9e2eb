import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { END_LIMIT_MS } from "../../../../agent/snapshots/criu/criu.ts";
import { explainRestore, whyNotRestored } from "../../../../agent/snapshots/restore/reason.ts";
import { RESTORE_LIMIT_MS } from "../../../../agent/snapshots/restore/restore.ts";

const said = (reason: string) => new Error("the container could not be started", { cause: engineError(reason) });
const engineError = (reason: string) =>
  new Error(
    `failed to create shim task: OCI runtime create failed: svc-runc: restore from /var/lib/x failed: ${reason}`,
  );

const LONG = "n".repeat(300);
const MADE_AGAIN = "a file that was deleted or replaced while a process had it open cannot be made again";

test.each([
  ["Can't link mnt-12/tmp/a -> tmp/a.cr.1.ghost: File exists", `${MADE_AGAIN}: "/tmp/a"`],
  ["Can't link x -> y: File exists ghost (/tmp/a b.cr.1f.ghost)", `${MADE_AGAIN}: "/tmp/a b"`],
  ["Can't link srv/link_remap.27 -> srv/f: No such file or directory", `${MADE_AGAIN}: "/srv/f"`],
  ["Can't create ghost", MADE_AGAIN],
  ["File tmp/log has bad size 10 (expect 4)", 'a file that a process has open is not as it was: "/tmp/log"'],
  [
    "Can't open file srv/x on restore: No such file or directory",
    'a file that a process had open is not there any more: "/srv/x"',
  ],
])("the reason of a restore that failed with %j names the file", (reason, words) =>
  expect(explainRestore(said(reason))).toBe(words),
);

test.each([
  [`File tmp/a"b\\c\u001b[31m\u202e has bad size 1`, '"/tmp/a?b?c?[31m?"'],
  [`File tmp/${LONG} has bad size 1`, `"/tmp/${"n".repeat(95)}..."`],
])(
  "a name that a sandbox chose is bounded and quoted, so that it does not read like the platform's text: %j",
  (reason, name) => {
    expect(explainRestore(said(reason))).toBe(`a file that a process has open is not as it was: ${name}`);
  },
);

test.each([
  ["Something\twith \u001b[31mcolours", /^CRIU says: Something\?with \?\[31mcolours$/],
  ["CRIU ended in the middle of it", /ended before it was through/],
  ["CRIU ended in the middle of it, runc with exit status 1: svc-confine: /a: x", /ended before it was through/],
])("any other reason, such as %j, is explained too", (reason, words) =>
  expect(explainRestore(said(reason))).toMatch(words),
);

test("a restore that svc-runc has ended at its limit has the sentence of the agent's limit, with the way out", () => {
  expect(explainRestore(said("the restore did not end within its limit of 30 s"))).toBe(
    "the restore did not end within its limit of 30 s; try again, or start from the disk alone (memory: false)",
  );
});

test("the agent ends a restore before svc-runc does, and waits for what svc-runc ends", () => {
  const script = readFileSync(join(import.meta.dirname, "../../../../scripts/host/runtime/svc-runc"), "utf8");
  const ofRuntimeMs = Number(/^restore_limit=(\d+)$/m.exec(script)?.[1]) * 1_000;
  // Docker prepares the container before svc-runc begins to count.
  expect(RESTORE_LIMIT_MS).toBeLessThan(ofRuntimeMs - 5_000);
  expect(END_LIMIT_MS).toBeGreaterThan(ofRuntimeMs);
});

test.each([
  ["File tmp/log has bad size 10 (expect 4)", `a file that a process has open is not as it was: "/tmp/log"`],
  ["Can't fork for 7: Cannot allocate memory", "there is no memory left for it, in the sandbox or on its node"],
  ["something new", "CRIU says: something new"],
  [
    "the restore did not end within its limit of 30 s",
    "the restore did not end within its limit of 30 s; try again, or",
  ],
])("the owner of a sandbox whose restore failed with %j is told the way out once", (reason, words) => {
  const told = whyNotRestored(said(reason));
  expect(told.startsWith(words)).toBe(true);
  expect(told.split("start from the disk alone (memory: false)")).toHaveLength(2);
});

test("text that svc-runc did not write is not passed on", () => {
  expect(explainRestore(new Error("connect ENOENT /var/run/docker.sock"))).toBe("Docker could not start it");
});
