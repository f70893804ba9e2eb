/** The disk of a sandbox as a program that uses the SDK sees it: its size, its end, and its copies while programs write. */

import { Sandbox } from "e2b";
import { describe, expect, onTestFinished, test } from "vitest";
import { dropFrozen } from "../../support/platform/frozen.ts";
import { openPlatform } from "../../support/platform/platform.ts";
import { settingOf } from "../../support/platform/programs.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const root = { user: "root" } as const;
const FULL = "No space left on device";
/** The words go to memory: a full disk has no room for them. */
const FILL = `cat /dev/zero > /opt/full 2>/dev/shm/why; grep -o '${FULL}' /dev/shm/why`;
const MIB = 2 ** 20;
/** Rounds of the test of integrity; `SVC_TEST_DISK_ROUNDS=10` and more files take some minutes. */
const ROUNDS = Number(process.env["SVC_TEST_DISK_ROUNDS"] ?? 1);
const FILES = Number(process.env["SVC_TEST_DISK_FILES"] ?? 2_000);

async function shell(sandbox: Sandbox, text: string): Promise<string> {
  return (await sandbox.commands.run(text, { ...root, timeoutMs: 300_000 })).stdout.trim();
}

async function forkOf(source: Sandbox): Promise<Sandbox> {
  const [copy] = await source.fork({ count: 1, timeoutMs: 900_000 });
  if (!(copy instanceof Sandbox)) throw copy ?? new Error("no fork");
  onTestFinished(async () => void (await copy.kill()));
  return copy;
}

describe("a disk", () => {
  test("is as large as the API says, and at its end files can still be deleted, and the sandbox paused and forked", async () => {
    const size = Number(settingOf(platform, "orchestrator", "SVC_BASE_DISK_MB"));
    const sandbox = await ownSandbox({ timeoutMs: 900_000 });
    expect(Number(await shell(sandbox, "df --block-size=1M --output=size / | tail -1"))).toBe(size);
    expect(await shell(sandbox, FILL)).toBe(FULL);
    const used = async () => (await sandbox.getMetrics()).at(-1);
    await expect.poll(async () => (await used())?.diskUsed, { timeout: 90_000 }).toBeGreaterThan((size - 20) * MIB);
    expect((await used())?.diskTotal).toBe(size * MIB);

    await sandbox.pause();
    await dropFrozen(platform, sandbox.sandboxId);
    await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 900_000 });
    expect(await shell(sandbox, FILL.replace("full", "more"))).toBe(FULL);
    const copy = await forkOf(sandbox);
    await copy.files.remove("/opt/full", root);
    expect(await shell(copy, "head -c 100M /dev/zero > /opt/own && stat -c %s /opt/own")).toBe(String(100 * MIB));
    expect(await shell(sandbox, "ls /opt/own 2>/dev/null; stat -c %n /opt/full")).toBe("/opt/full");
    await sandbox.files.remove("/opt/full", root);
    await sandbox.files.write("/opt/again", "written", root);
  }, 600_000);

  test("has a limit of files, which a sandbox survives", async () => {
    const sandbox = await ownSandbox({ timeoutMs: 900_000 });
    const inodes = Number(await shell(sandbox, "df --output=itotal / | tail -1"));
    const script = `mkdir /opt/many && cd /opt/many && seq ${inodes} | xargs touch 2>&1 | grep -om1 '${FULL}'`;
    expect(await shell(sandbox, script)).toBe(FULL);
    expect(await shell(sandbox, "rm -r /opt/many && touch /opt/again && echo well")).toBe("well");
  }, 600_000);
});

/** Writes to a database and to a tree of files, and stops with a message at the first thing that is not as it was left. */
const WRITER = `
import hashlib, os, random, sqlite3
os.makedirs("/opt/tree", exist_ok=True)
database = sqlite3.connect("/opt/data.db", isolation_level=None)
database.execute("pragma journal_mode=" + os.environ["MODE"])
database.execute("create table if not exists chain (n integer primary key, hash text)")
last, count, files = "", 0, int(os.environ["FILES"])
while True:
    count += 1
    last = hashlib.sha256((last + str(count)).encode()).hexdigest()
    database.execute("insert into chain values (?, ?)", (count, last))
    for _ in range(20):
        path = f"/opt/tree/{random.randrange(files)}"
        content = os.urandom(random.randrange(1, 3000))
        open(path + ".new", "wb").write(hashlib.sha256(content).digest() + content)
        os.rename(path + ".new", path)
    if count % 50 == 0: open("/opt/alive", "w").write(str(count))
`;

/** Checks what the writer has left, and prints how much. */
const CHECK = `
import hashlib, os, sqlite3
database = sqlite3.connect("/opt/data.db")
assert database.execute("pragma integrity_check").fetchone()[0] == "ok"
last, rows = "", 0
for n, found in database.execute("select n, hash from chain order by n"):
    rows += 1
    last = hashlib.sha256((last + str(n)).encode()).hexdigest()
    assert n == rows and found == last, n
files = 0
for name in os.listdir("/opt/tree"):
    if name.endswith(".new"): continue
    text = open("/opt/tree/" + name, "rb").read()
    assert hashlib.sha256(text[32:]).digest() == text[:32], name
    files += 1
print(rows > 50 and files > 50)
`;

// The other journal mode has its turn in long runs.
describe.each(ROUNDS > 1 ? ["wal", "delete"] : ["wal"])(
  "a database with journal_mode=%s and a tree of files that change",
  (mode) => {
    test("are whole in every pause, fork and snapshot, and the writer goes on in each", async () => {
      const sandbox = await ownSandbox({ timeoutMs: 1_800_000 });
      await sandbox.files.write("/opt/writer.py", WRITER, root);
      await sandbox.files.write("/opt/check.py", CHECK, root);
      const envs = { MODE: mode, FILES: String(FILES) };
      await sandbox.commands.run("exec python3 /opt/writer.py 2>/opt/why", {
        ...root,
        envs,
        background: true,
        timeoutMs: 0,
      });
      const goesOn = async (one: Sandbox) => {
        const alive = async () => Number(await shell(one, "cat /opt/alive 2>/dev/null || echo 0"));
        const before = await alive();
        await expect.poll(alive, { timeout: 180_000 }).toBeGreaterThan(before);
      };
      const check = async (one: Sandbox) => {
        await goesOn(one);
        expect(await shell(one, "pkill -f '[w]riter.py'; cat /opt/why")).toBe("");
        expect(await shell(one, "python3 /opt/check.py")).toBe("True");
      };
      await goesOn(sandbox);
      for (let round = 0; round < ROUNDS; round++) {
        await sandbox.pause();
        await dropFrozen(platform, sandbox.sandboxId);
        await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_800_000 });
        await goesOn(sandbox);
        const fork = await forkOf(sandbox);
        const { snapshotId } = await sandbox.createSnapshot();
        onTestFinished(async () => void (await Sandbox.deleteSnapshot(snapshotId)));
        const started = await Sandbox.create(snapshotId, { timeoutMs: 900_000 });
        onTestFinished(async () => void (await started.kill()));
        for (const copy of [fork, started]) {
          await check(copy);
          await copy.kill();
        }
      }
      await check(sandbox);
    }, 1_200_000);
  },
);
