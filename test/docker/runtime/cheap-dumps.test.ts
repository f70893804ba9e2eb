/** What the library in CRIU does for the time of a dump: it moves pages by the pipe, asks for fewer lines in the log, and keeps mounts. */

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const SOURCES = join(import.meta.dirname, "../../../scripts/host/criu");
/** Of criu_req in CRIU's rpc.proto. */
const [DUMP, RESTORE] = [1, 2];

const place = { directory: "", library: "" };

beforeAll(async () => {
  place.directory = await mkdtemp(join(tmpdir(), "svc-dumps-"));
  place.library = join(place.directory, "dumps.so");
  const install = await readFile(join(SOURCES, "install"), "utf8");
  const sources = (await Promise.all(["", "dump"].map((folder) => inFolder(folder)))).flat();
  expect(install).toContain("dump/criu-{cgroups,pages,log}.c");
  const options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"];
  await run("cc", [...options, "-o", place.library, ...sources]);
});
afterAll(() => rm(place.directory, { recursive: true }));

/** What is loaded into CRIU. */
async function inFolder(folder: string): Promise<string[]> {
  const names = await readdir(join(SOURCES, folder));
  return names.filter((name) => /^criu-\w+\.c$/.test(name)).map((name) => join(SOURCES, folder, name));
}

/** What a program in Python prints, which calls libc as CRIU does. */
async function python(program: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, LD_PRELOAD: place.library };
  return (await run("python3", ["-c", program, ...args], { env, cwd: place.directory })).stdout.trim();
}

/** Splices pieces of 3, 1, 2, … pages as CRIU does; prints what each call answered, and the size of the file after each. */
const SPLICE = `
import os, sys
page, flags = 4096, int(sys.argv[1])
there, here = os.pipe()
image = os.open("image", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
wanted = b""
for pieces in ([3, 1, 2], [1], [5, 5]):
    filled = os.urandom(page * sum(pieces))
    wanted += filled
    os.write(here, filled)
    for pages in pieces:
        asked = pages * page
        while asked:
            moved = os.splice(there, image, asked, flags=flags)
            asked -= moved
            print(moved // page, os.fstat(image).st_size // page, end=" ")
assert os.pread(image, len(wanted) + 1, 0) == wanted
`;

test("pages are in the image in their order, all that was in the pipe after the first call, and each call answers what was asked", async () => {
  expect(await python(SPLICE, "1")).toBe("3 6 1 6 2 6 1 7 5 17 5 17");
});

test("a call with other flags moves what it says", async () => {
  expect(await python(SPLICE, "0")).toBe("3 3 1 4 2 6 1 7 5 12 5 17");
});

test("a call that would take the rest of an image into another one fails", async () => {
  const program = `
import os
there, here = os.pipe()
image, other = [os.open(name, os.O_RDWR | os.O_CREAT) for name in ("one", "other")]
os.write(here, bytes(8192))
os.splice(there, image, 4096, flags=1)
try:
    os.splice(there, other, 4096, flags=1)
except OSError as error:
    print(error.errno, os.fstat(other).st_size)`;
  expect(await python(program)).toBe("5 0");
});

test("what is moved from a file or to a pipe is moved by the call", async () => {
  const program = `
import os
there, here = os.pipe()
file = os.open("file", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.write(file, bytes(8192))
os.lseek(file, 0, 0)
print(os.splice(file, here, 4096, flags=1), os.splice(file, here, 4096, flags=1), len(os.read(there, 9000)))`;
  expect(await python(program)).toBe("4096 4096 8192");
});

/** A message of CRIU's protocol: the number of each field with its value. */
function message(...fields: readonly (readonly [number, number | Buffer])[]): Buffer {
  const parts = fields.flatMap(([field, value]) =>
    typeof value === "number"
      ? [varint(field << 3), varint(value)]
      : [varint((field << 3) | 2), varint(value.length), value],
  );
  return Buffer.concat(parts);
}

function varint(value: number): Buffer {
  return value < 128 ? Buffer.from([value]) : Buffer.concat([Buffer.from([(value & 127) | 128]), varint(value >> 7)]);
}

/** As CRIU receives a request: it looks for the length first. */
async function received(request: Buffer): Promise<Buffer> {
  const program = `
import socket, sys
there, here = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
there.send(bytes.fromhex(sys.argv[1]))
length = len(here.recv(100000, socket.MSG_PEEK))
print(here.recv(length, socket.MSG_TRUNC).hex())`;
  return Buffer.from(await python(program, request.toString("hex")), "hex");
}

const options = (level: number) =>
  message([1, 300], [2, 70_000], [9, level], [10, Buffer.from("dump.log")], [61, Buffer.from("H\u0004H\u0004")]);

test("a dump has no debug lines in its log, and its request is otherwise as it was", async () => {
  expect(await received(message([1, DUMP], [2, options(4)]))).toEqual(message([1, DUMP], [2, options(3)]));
});

test.each([
  { name: "a restore", request: message([1, RESTORE], [2, options(4)]) },
  { name: "a dump with another level", request: message([1, DUMP], [2, options(2)]) },
  { name: "a dump without options", request: message([1, DUMP]) },
  { name: "the question for the version", request: message([1, 10]) },
  { name: "a request that is cut", request: message([1, DUMP], [2, options(4)]).subarray(0, -1) },
])("$name keeps its request", async ({ request }) => {
  expect(await received(request)).toEqual(request);
});

/** Mounts a hierarchy of cgroups twice, as CRIU does for two threads, and another kind of file system twice; prints what is one mount. */
const MOUNT = `
import ctypes, os, re
libc = ctypes.CDLL(None, use_errno=True)
OPEN, CONFIG, MOUNT, FLAG, CREATE = 430, 431, 432, 0, 6
print(libc.syscall(OPEN, None, -1), end=" ")
def mounted(kind, *options):
    context = libc.syscall(OPEN, kind, 0)
    for option in options:
        assert libc.syscall(CONFIG, context, FLAG, option, None, 0) == 0
    assert libc.syscall(CONFIG, context, CREATE, None, None, 0) == 0
    mount = libc.syscall(MOUNT, context, 0, 0)
    assert mount >= 0
    os.close(context)
    names = sorted(os.listdir("/proc/self/fd/%d" % mount))
    with open("/proc/self/fdinfo/%d" % mount) as info:
        # It stays open, because the number of a mount is used again.
        number = re.search(r"mnt_id:\\s*(\\d+)", info.read()).group(1)
    return number, names
first = [line.split(":")[1] for line in open("/proc/self/cgroup") if ":pids:" in line]
one = (b"cgroup", b"pids") if first else (b"cgroup2",)
same, again, other, another = mounted(*one), mounted(*one), mounted(b"tmpfs"), mounted(b"tmpfs")
print(same == again, len(same[1]) > 0, other[0] == another[0])`;

test("a hierarchy of cgroups is mounted once, and any other file system each time", async () => {
  expect(await python(MOUNT)).toBe("-1 True True False");
});
