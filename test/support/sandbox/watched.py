"""Runs inside a sandbox: watches files and directories of every kind by one inotify descriptor. Prints "ready", and from then on, each
time that there is a file /tmp/go-N, does something with each that has a name and prints as JSON which of them it heard of."""
import ctypes
import json
import os
import struct
import time

libc = ctypes.CDLL(None, use_errno=True)
ALL_EVENTS = 0xFFF
NONBLOCK = 0o4000
ROUNDS = 4
watches = libc.inotify_init1(NONBLOCK)
kinds = {}
held = []


def watch(kind, path):
    number = libc.inotify_add_watch(watches, path.encode(), ALL_EVENTS)
    if number < 0:
        raise OSError(ctypes.get_errno(), path)
    kinds[number] = kind


def write(path, text="x"):
    with open(path, "a") as file:
        file.write(text)
    return path


def held_deleted(kind, path, remove, flags=os.O_RDONLY):
    watch(kind, path)
    held.append(os.open(path, flags))
    remove(path)


# What is done with each that has a name, in every round.
acts = {}
os.makedirs("/w/dir")
watch("the root", "/")
acts["the root"] = lambda n: write(f"/of-round-{n}-{os.getpid()}")
watch("a new file", write("/w/file"))
acts["a new file"] = lambda n: write("/w/file")
watch("a new directory", "/w/dir")
acts["a new directory"] = lambda n: write(f"/w/dir/{n}")
watch("a file of the image", "/etc/debian_version")
acts["a file of the image"] = lambda n: open("/etc/debian_version").close()
watch("a directory of the image", "/usr/lib")
acts["a directory of the image"] = lambda n: os.listdir("/usr/lib")
watch("a directory of image and layer", "/etc")
acts["a directory of image and layer"] = lambda n: write(f"/etc/of-round-{n}")
watch("a file that was changed before", write("/etc/issue"))
acts["a file that was changed before"] = lambda n: write("/etc/issue")
watch("a file that was changed afterwards", "/etc/issue.net")
write("/etc/issue.net")
acts["a file that was changed afterwards"] = lambda n: open("/etc/issue.net").close()
os.rename(write("/etc/host.conf", "\n"), "/w/renamed")
watch("a file that was renamed", "/w/renamed")
acts["a file that was renamed"] = lambda n: write("/w/renamed")
os.link(write("/w/first-name"), "/w/second-name")
watch("a file by its first name", "/w/first-name")
os.unlink("/w/first-name")
acts["a file by its first name"] = lambda n: write("/w/second-name")
os.makedirs("/dev/shm/dir")
watch("a directory in memory", "/dev/shm/dir")
acts["a directory in memory"] = lambda n: write(f"/dev/shm/dir/{n}")
watch("a file in memory", write("/dev/shm/file"))
acts["a file in memory"] = lambda n: write("/dev/shm/file")
watch("a mounted file", "/etc/resolv.conf")
acts["a mounted file"] = lambda n: open("/etc/resolv.conf").close()
watch("devices", "/dev")
acts["devices"] = lambda n: os.listdir("/dev")
watch("a name with line ends and other bytes", write("/w/two\nlines"))
acts["a name with line ends and other bytes"] = lambda n: write("/w/two\nlines")
os.mkfifo("/w/fifo")
watch("a fifo", "/w/fifo")
watch("a file of the kernel", "/proc/version")
watch("a directory of the kernel", "/sys/class/net")
write("/w/gone")
held_deleted("a deleted file", "/w/gone", os.unlink)
os.makedirs("/w/gone-dir")
held_deleted("a deleted directory", "/w/gone-dir", os.rmdir, os.O_RDONLY | os.O_DIRECTORY)
write("/dev/shm/gone")
held_deleted("a deleted file in memory", "/dev/shm/gone", os.unlink)


def heard():
    found = set()
    while True:
        try:
            data = os.read(watches, 65536)
        except BlockingIOError:
            return found
        at = 0
        while at < len(data):
            number, _, _, length = struct.unpack_from("iIII", data, at)
            at += 16 + length
            found.add(kinds.get(number))


heard()
print("ready", flush=True)
for turn in range(1, ROUNDS + 1):
    while not os.path.exists(f"/tmp/go-{turn}"):
        time.sleep(0.1)
    # What the pause itself caused.
    heard()
    for act in acts.values():
        act(turn)
    known = heard()
    print(json.dumps({kind: kind in known for kind in acts}), flush=True)
