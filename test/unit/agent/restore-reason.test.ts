import { expect, test } from "vitest";
import { explainRestore } from "../../../agent/snapshots/restore/reason.ts";

const said = (reason: string) => new Error("the container could not be started", { cause: engineError(reason) });
const engineError = (reason: string) =>
  new Error(
    `failed to create shim task: OCI runtime create failed: svc-runc: restore from /var/lib/x failed: ${reason}`,
  );

test.each([
  ["Can't link mnt-12/tmp/a -> tmp/a.cr.1.ghost: File exists", /deleted or replaced while a process had it open/],
  ["File tmp/log has bad size 10 (expect 4)", /is not as it was/],
  ["Can't open file srv/x on restore: No such file or directory", /not there any more/],
  ["Something\twith \u001b[31mcolours", /^CRIU says: Something\?with \?\[31mcolours$/],
  ["CRIU ended in the middle of it", /ended before it was through/],
])("%j", (reason, words) => expect(explainRestore(said(reason))).toMatch(words));

test("what svc-runc did not say is not passed on", () => {
  expect(explainRestore(new Error("connect ENOENT /var/run/docker.sock"))).toBe("the engine could not start it");
});
