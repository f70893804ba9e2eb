/**
 * What the start of a confined CRIU costs: it reads in the agent's note what the kernel can do, and does not try the kernel out at each
 * call; and a CRIU that is only asked for its version needs no confinement.
 */

import { execFile } from "node:child_process";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { runCommand } from "../../agent/host/command.ts";
import { CRIU_PATH } from "../../agent/snapshots/criu/criu.ts";
import { noteKernelFeatures } from "../../agent/snapshots/criu/kernel-features.ts";

const run = promisify(execFile);

async function directory(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "svc-features-"));
  onTestFinished(() => rm(made, { recursive: true }));
  return made;
}

test("a confined CRIU reads the note that the agent has made", async () => {
  await noteKernelFeatures(runCommand);
  const images = await directory();
  const work = await directory();
  // There is no image, so it ends after its beginning.
  const where = ["--images-dir", images, "--work-dir", work];
  await run("criu", ["lazy-pages", ...where, "-v4", "--log-file", "log"], {
    env: { PATH: CRIU_PATH },
    timeout: 60_000,
  }).catch(() => undefined);
  expect(await readFile(join(work, "log"), "utf8")).toContain("Loaded kdat cache from /run/criu.kdat");
});

test("the note is replaced in one step: a confined CRIU that begins meanwhile finds one", async () => {
  await noteKernelFeatures(runCommand);
  const over = new AbortController();
  const replaced = noteKernelFeatures(runCommand).finally(() => over.abort());
  let looks = 0;
  while (!over.signal.aborted) {
    await access("/run/criu.kdat");
    looks++;
  }
  await replaced;
  expect(looks).toBeGreaterThan(1);
});

test("a confined CRIU starts while the note is replaced again and again", async () => {
  const images = await directory();
  const work = await directory();
  // In a mount namespace of its own: other tests of the machine use the note.
  const script = `
mount -t tmpfs none /run && touch /run/criu.kdat || exit 1
while :; do touch /run/new; mv -f /run/new /run/criu.kdat; done &
replacing=$!
for turn in $(seq 100); do
  rm -f ${work}/log
  criu lazy-pages --images-dir ${images} --work-dir ${work} -v4 --log-file log
  [ -s ${work}/log ] || { echo "turn $turn: CRIU did not start"; break; }
done 2>&1
kill $replacing`;
  const { stdout } = await run("unshare", ["--mount", "--propagation", "private", "sh", "-c", script], {
    env: { PATH: CRIU_PATH },
    timeout: 200_000,
  });
  expect(stdout).not.toContain("svc-confine");
  expect(stdout).not.toContain("did not start");
});

// In message after message: what CRIU answers, or its last words. Without this capability nobody makes a mount namespace.
const ASK = `
import socket, subprocess, sys
for message in sys.argv[1:]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if message: ours.send(bytes.fromhex(message))
    there = theirs.fileno()
    criu = ["setpriv", "--bounding-set=-sys_admin", "criu", "swrk", str(there)]
    words = subprocess.run(criu, pass_fds=[there], stderr=subprocess.PIPE, text=True).stderr
    theirs.close()
    try: answer = ours.recv(4096)
    except ConnectionResetError: answer = b""
    print(answer.hex() or words.strip())
`;

test("a CRIU that is asked for its version alone is not confined, and any other one is", async () => {
  const version = "080a";
  // The version and then another request; a feature; nothing yet.
  const others = ["080a2001", "0809", ""];
  const { stdout } = await run("python3", ["-c", ASK, version, ...others], {
    env: { PATH: CRIU_PATH },
    timeout: 60_000,
  });
  const [answer, ...words] = stdout.trimEnd().split("\n");
  // The same type, and success.
  expect(answer).toMatch(/^080a1001/);
  expect(words).toEqual(others.map(() => "svc-confine: a mount namespace: Operation not permitted"));
});
