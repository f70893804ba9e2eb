/** What programs have of the kernel: files, memory, pipes, sockets, locks, watches and timers, each with a number that lives there. */

import { counter, type Program, program } from "../program.ts";
import { BASH } from "./languages.ts";

/** Each answer is what `step` returns: the number is in the object of the kernel, and not in a variable. */
function held(name: string, setUp: string, step: string, more: Partial<Program> = {}): Program {
  const text = `import ctypes, fcntl, mmap, multiprocessing, os, resource, select, signal, socket, struct, subprocess, sys, time
def number(data): return struct.unpack("<q", data)[0]
def data(number): return struct.pack("<q", number)
libc = ctypes.CDLL(None, use_errno=True)
${setUp}
def step():
${step.replaceAll(/^/gm, "    ")}
print(os.getpid(), 0, flush=True)
for _ in sys.stdin:
    print(os.getpid(), step(), flush=True)
`;
  return counter(name, "python3 held.py", { "held.py": text }, more);
}

/** A child process that does this again and again, with a number of its own. */
function inChild(body: string): string {
  return `if os.fork() == 0:\n    n = 0\n    while True:\n${body.replaceAll(/^/gm, "        ")}`;
}

export const KERNEL: readonly Program[] = [
  held(
    "An open file that is deleted",
    `file = open("gone", "w+b", buffering=0)
file.write(data(0))
os.unlink("gone")`,
    `n = number(os.pread(file.fileno(), 8, 0)) + 1
os.pwrite(file.fileno(), data(n), 0)
return n`,
  ),
  held(
    "A sparse file of 4 GiB, mapped",
    `file = open("sparse", "w+b")
file.truncate(4 << 30)
memory = mmap.mmap(file.fileno(), 4 << 30)
at = 3 << 30`,
    `memory[at:at + 8] = data(number(memory[at:at + 8]) + 1)
return number(memory[at:at + 8])`,
  ),
  held(
    "10 000 open files",
    `soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
os.makedirs("many", exist_ok=True)
files = [os.open(f"many/{n}", os.O_RDWR | os.O_CREAT | os.O_TRUNC) for n in range(10_000)]
for file in files: os.pwrite(file, data(0), 0)`,
    `numbers = {number(os.pread(file, 8, 0)) for file in files}
assert len(numbers) == 1, numbers
n = numbers.pop() + 1
for file in files: os.pwrite(file, data(n), 0)
return n`,
  ),
  held(
    "A tree of 300 processes",
    `children = []
for _ in range(300):
    (down, to_child), (to_parent, up) = os.pipe(), os.pipe()
    if os.fork() == 0:
        n = 0
        while os.read(down, 1): n += 1; os.write(up, data(n))
        os._exit(0)
    os.close(down); os.close(up)
    children.append((to_child, to_parent))`,
    `for to_child, _ in children: os.write(to_child, b"x")
numbers = {number(os.read(to_parent, 8)) for _, to_parent in children}
assert len(numbers) == 1, numbers
return numbers.pop()`,
  ),
  held(
    "A chain of twenty FIFOs",
    `for n in range(21):
    if not os.path.exists(f"fifo{n}"): os.mkfifo(f"fifo{n}")
first, last = os.open("fifo0", os.O_RDWR), os.open("fifo20", os.O_RDWR)
for n in range(20): subprocess.Popen(f"exec cat <>fifo{n} >fifo{n + 1}", shell=True)
passed = 0`,
    `global passed
passed += 1
os.write(first, data(passed))
return number(os.read(last, 8))`,
  ),
  held(
    "Shared memory and semaphores of processes",
    `total = multiprocessing.Value("q", 0)
asked, done = multiprocessing.Semaphore(0), multiprocessing.Semaphore(0)
${inChild("asked.acquire(); total.value += 1; done.release()")}`,
    `asked.release(); done.acquire()
return total.value`,
  ),
  held(
    "System V shared memory",
    `libc.shmat.restype = ctypes.c_void_p
name = libc.shmget(0, 4096, 0o1600)
assert name >= 0, os.strerror(ctypes.get_errno())
memory = (ctypes.c_int64 * 1).from_address(libc.shmat(name, None, 0))`,
    `memory[0] += 1
return memory[0]`,
  ),
  held(
    "Locks of files (flock and fcntl)",
    `whole, part = open("whole", "w"), open("part", "w")
fcntl.flock(whole, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.lockf(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
refused = 0
other = """
import fcntl
for lock, name in ((fcntl.flock, "whole"), (fcntl.lockf, "part")):
    try: lock(open(name, "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: continue
    raise SystemExit(f"{name} is not locked")
"""`,
    `global refused
subprocess.run([sys.executable, "-c", other], check=True)
refused += 1
return refused`,
  ),
  held(
    "A Unix socket with an abstract name",
    `listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0matrix")
listener.listen()
${inChild(`connection, _ = listener.accept()
while connection.recv(1): n += 1; connection.send(data(n))`)}
client = socket.socket(socket.AF_UNIX)
client.connect("\\0matrix")`,
    `client.send(b"x")
return number(client.recv(8))`,
  ),
  held(
    "TCP connections of IPv4 and IPv6 inside the sandbox",
    `def connected(family, host):
    listener = socket.socket(family)
    listener.bind((host, 0))
    listener.listen()
    if os.fork() == 0:
        connection, _ = listener.accept()
        n = 0
        while connection.recv(1): n += 1; connection.send(data(n))
    client = socket.socket(family)
    client.connect(listener.getsockname())
    return client
clients = [connected(socket.AF_INET, "127.0.0.1"), connected(socket.AF_INET6, "::1")]`,
    `for client in clients: client.send(b"x")
numbers = {number(client.recv(8)) for client in clients}
assert len(numbers) == 1, numbers
return numbers.pop()`,
  ),
  held(
    "A UDP socket",
    `server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
${inChild(`_, peer = server.recvfrom(1)
n += 1
server.sendto(data(n), peer)`)}
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.connect(server.getsockname())`,
    `client.send(b"x")
return number(client.recv(8))`,
  ),
  held(
    "Descriptors that go through a Unix socket",
    `here, there = socket.socketpair()
${inChild(`_, (file,), _, _ = socket.recv_fds(there, 1, 1)
os.pwrite(file, data(number(os.pread(file, 8, 0)) + 1), 0)
os.close(file)
there.send(b"x")`)}
sent = os.open("sent", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.pwrite(sent, data(0), 0)`,
    `socket.send_fds(here, [b"x"], [sent])
here.recv(1)
return number(os.pread(sent, 8, 0))`,
  ),
  held(
    "A watch of files (inotify)",
    `os.makedirs("watched", exist_ok=True)
watch = libc.inotify_init1(0)
assert libc.inotify_add_watch(watch, b"watched", 0x100) >= 0
made = 0`,
    `global made
made += 1
open(f"watched/{os.getpid()}-{made}", "w").close()
event = os.read(watch, 4096)
assert f"{os.getpid()}-{made}".encode() in event, event
return made`,
  ),
  held(
    "epoll with an event descriptor and a timer",
    `events, timer = os.eventfd(0), libc.timerfd_create(1, 0)
assert libc.timerfd_settime(timer, 0, struct.pack("<4q", 0, 50_000_000, 0, 50_000_000), None) == 0
poll = select.epoll()
for each in (events, timer): poll.register(each, select.EPOLLIN)
seen = 0`,
    `global seen
os.eventfd_write(events, 1)
left = {events, timer}
while left:
    for ready, _ in poll.poll():
        os.read(ready, 8)
        left.discard(ready)
seen += 1
return seen`,
  ),
  held(
    "Interval timers and handlers of signals",
    `fired = 0
def handler(*_):
    global fired
    fired += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
seen = 0`,
    `global seen
before = fired
while fired == before: time.sleep(0.01)
seen += 1
return seen`,
  ),
  held(
    "A pseudo-terminal with a shell",
    `import pty
child, terminal = pty.fork()
if child == 0: os.execvp("bash", ["bash", "--norc", "-c", "n=0; stty -echo; echo ready; while read -r _; do n=$((n+1)); echo n=$n.; done"])
while b"ready" not in os.read(terminal, 4096): pass`,
    `os.write(terminal, b"x\\n")
text = b""
while b"." not in text: text += os.read(terminal, 4096)
return int(text.split(b"n=")[1].split(b".")[0])`,
  ),
  held(
    "Memory of 1 GiB",
    `memory = mmap.mmap(-1, 1 << 30)
for at in range(0, 1 << 30, 4096): memory[at:at + 8] = data(at)
memory[0:8] = data(0)`,
    `for at in range(4096, 1 << 30, 1 << 24): assert number(memory[at:at + 8]) == at
memory[0:8] = data(number(memory[0:8]) + 1)
return number(memory[0:8])`,
  ),
  held(
    "SQLite in WAL mode, with a reader",
    `import sqlite3
writer, reader = (sqlite3.connect("wal.db", isolation_level=None) for _ in range(2))
assert writer.execute("pragma journal_mode=wal").fetchone() == ("wal",)
writer.execute("create table if not exists counted (n integer)")
writer.execute("delete from counted")
writer.execute("insert into counted values (0)")`,
    `writer.execute("update counted set n = n + 1")
(n,) = reader.execute("select n from counted").fetchone()
assert os.path.exists("wal.db-shm")
return n`,
  ),
  held(
    "Huge pages, which a sandbox does not get",
    "asked = 0",
    `global asked
try: mmap.mmap(-1, 2 << 20, flags=0x22 | 0x40000)
except OSError: asked += 1
return asked`,
  ),
  held(
    "io_uring, which a sandbox does not have",
    "asked = 0",
    `global asked
if libc.syscall(425, 1, ctypes.byref(ctypes.create_string_buffer(120))) < 0: asked += 1
return asked`,
  ),
  program({
    name: "socat between two TCP ports",
    files: { "count.sh": BASH },
    start: `apart socat TCP-LISTEN:8211,bind=127.0.0.1,reuseaddr EXEC:"bash count.sh"
reached bash -c 'ss -Htln sport = :8211 | grep -q .'
apart socat TCP-LISTEN:8212,bind=127.0.0.1,reuseaddr TCP:127.0.0.1:8211
reached bash -c 'ss -Htln sport = :8212 | grep -q .'
counter socat - TCP:127.0.0.1:8212`,
    ask: "answer",
  }),
];
