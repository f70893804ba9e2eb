"""Runs inside a sandbox.

inventory: prints what inodes this sandbox can reach outside of its own root, as JSON: "device:inode" -> a way to it. Whole
file systems of its own (root, /proc, /sys) count by their root.
try: takes a lease, locks and watches on each, and tries to mark it; prints as JSON what was refused.
hold: the same, and goes on holding. Once there is a file /tmp/look it prints what the watches saw, once there is a file
/tmp/over it ends."""
import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"
FANOTIFY_INIT, PIDFD_OPEN = (262, 434) if ARM else (300, 434)
F_SETLEASE, F_NOTIFY, F_OFD_SETLK, F_SETDELEG = 1024, 1026, 37, 1040
NONBLOCK = 0o4000
ALL_EVENTS = 0xFFF
# Seconds for each of both files.
LONGEST_HOLD = 120
MASK = (ctypes.c_ulong * 16)()


def made():
    """Every kind of descriptor that is no file of a directory."""
    yield "eventfd", libc.eventfd(0, 0)
    yield "epoll", libc.epoll_create1(0)
    yield "timerfd", libc.timerfd_create(1, 0)
    yield "signalfd", libc.signalfd(-1, MASK, 0)
    yield "inotify", libc.inotify_init1(0)
    yield "memfd", libc.memfd_create(b"probe", 0)
    yield "pidfd", libc.syscall(PIDFD_OPEN, os.getpid(), 0)
    yield "pipe", os.pipe()[0]
    yield "terminal", os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    for name, family, kind in (("tcp", socket.AF_INET, 1), ("unix", socket.AF_UNIX, 1), ("netlink", 16, 3)):
        yield name, socket.socket(family, kind, 0).detach()


def inventory():
    found = {}

    def add(about, way):
        found.setdefault(f"{about.st_dev}:{about.st_ino}", way)

    def look(path, way=None):
        try:
            add(os.stat(path), way or path)
        except OSError:
            pass

    for name, descriptor in made():
        if descriptor < 0:
            raise OSError(ctypes.get_errno(), name)
        add(os.fstat(descriptor), f"made {name}")
    for process in filter(str.isdigit, os.listdir("/proc")):
        for kind in ("exe", "cwd", "root"):
            look(f"/proc/{process}/{kind}")
        for kind in ("ns", "fd"):
            try:
                names = os.listdir(f"/proc/{process}/{kind}")
            except OSError:
                continue
            for name in names:
                look(f"/proc/{process}/{kind}/{name}", f"/proc/self/ns/{name}" if kind == "ns" else None)
    with open("/proc/self/mountinfo") as file:
        mounts = [(line.split()[4], line.split(" - ")[1].split()[0]) for line in file]
    for place, kind in mounts:
        look(place)
        if place == "/" or kind in ("proc", "sysfs"):
            continue
        for directory, below, files in os.walk(place):
            below[:] = [name for name in below if not os.path.ismount(os.path.join(directory, name))]
            for name in files:
                path = os.path.join(directory, name)
                try:
                    add(os.lstat(path), path)
                except OSError:
                    pass
    return found


def refusal(action):
    try:
        action()
        return None
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))


def lock(kind):
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


# What a sandbox can take on a file. A lock for writing needs a file that is open for writing.
ATTEMPTS = {
    "lease for reading": lambda fd: fcntl.fcntl(fd, F_SETLEASE, fcntl.F_RDLCK),
    "lease for writing": lambda fd: fcntl.fcntl(fd, F_SETLEASE, fcntl.F_WRLCK),
    "lease with another upper half": lambda fd: checked(
        libc.syscall(25 if ARM else 72, fd, ctypes.c_ulong((1 << 32) + F_SETLEASE), fcntl.F_RDLCK)
    ),
    "delegation": lambda fd: fcntl.fcntl(fd, F_SETDELEG, struct.pack("IHH", 0, fcntl.F_RDLCK, 0)),
    "dnotify": lambda fd: fcntl.fcntl(fd, F_NOTIFY, 1),
    "flock": lambda fd: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB),
    "POSIX lock": lambda fd: fcntl.fcntl(fd, fcntl.F_SETLK, lock(fcntl.F_RDLCK)),
    "OFD lock": lambda fd: fcntl.fcntl(fd, F_OFD_SETLK, lock(fcntl.F_RDLCK)),
    "xattr": lambda fd: os.setxattr(fd, "user.probe", b"1"),
    "trusted xattr": lambda fd: os.setxattr(fd, "trusted.probe", b"1"),
}


def targets():
    for directory in ("/svc", "/svc/lib", "/svc/envd"):
        for name in os.listdir(directory):
            yield os.path.join(directory, name)
    for name in ("meminfo", "cpuinfo", "stat", "uptime", "loadavg", "swaps"):
        yield f"/proc/{name}"
    yield from ("/svc", "/sys/devices/system/cpu/online", "/sys/devices/system/cpu", "/proc", "/dev/null")
    yield from ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
    yield from (f"/proc/self/ns/{name}" for name in os.listdir("/proc/self/ns"))


def wait_for(path):
    for _ in range(LONGEST_HOLD * 5):
        if os.path.exists(path):
            return
        time.sleep(0.2)


def take(then):
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    watches = libc.inotify_init1(NONBLOCK)
    paths, answers = {}, {}
    # One path for each inode: a second lock of its own would be refused.
    files = {os.stat(path)[1:3]: path for path in targets()}
    opened = [(path, os.open(path, os.O_RDONLY)) for path in files.values()]
    opened.append(("made eventfd", libc.eventfd(0, 0)))
    for path, descriptor in opened:
        answers[path] = {name: refusal(lambda: attempt(descriptor)) for name, attempt in ATTEMPTS.items()}
        watch = libc.inotify_add_watch(watches, f"/proc/self/fd/{descriptor}".encode(), ALL_EVENTS)
        paths[watch] = path
    answers["fanotify"] = refusal(lambda: checked(libc.syscall(FANOTIFY_INIT, 0, 0)))
    # What its own attempts caused.
    seen(watches, paths)
    print(json.dumps(answers), flush=True)
    if then == "hold":
        wait_for("/tmp/look")
        print(json.dumps(seen(watches, paths)), flush=True)
        wait_for("/tmp/over")


def seen(watches, paths):
    found = []
    while True:
        try:
            data = os.read(watches, 65536)
        except BlockingIOError:
            return sorted(set(found))
        at = 0
        while at < len(data):
            watch, mask, _, length = struct.unpack_from("iIII", data, at)
            at += 16 + length
            found.append(f"{paths.get(watch)} {mask:#x}")


if sys.argv[1] == "inventory":
    print(json.dumps(inventory()))
else:
    take(sys.argv[1])
