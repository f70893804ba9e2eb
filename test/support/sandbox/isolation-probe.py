"""Runs inside a sandbox and tries what it must not be able to do. Prints one JSON object: attempt -> what happened."""
import ctypes
import errno
import json
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"
# Call numbers differ between processors: (x86_64, aarch64).
CALLS = {
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "open_by_handle_at": (304, 265),
    "fsopen": (430, 430),
    "move_mount": (429, 429),
    "pivot_root": (155, 41),
    "swapon": (167, 224),
    "reboot": (169, 142),
    "settimeofday": (164, 170),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "vmsplice": (316, 75),
    "move_pages": (279, 239),
    "lookup_dcookie": (212, 18),
}
results = {}


def attempt(name, action):
    try:
        value = action()
        results[name] = "did it" if value is None else f"did it: {value}"
    except OSError as error:
        results[name] = errno.errorcode.get(error.errno, str(error.errno))
    except Exception as error:
        results[name] = type(error).__name__


def check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def call(name):
    number = CALLS[name][1 if ARM else 0]
    buffer = ctypes.create_string_buffer(256)
    return lambda: check(libc.syscall(number, 1, buffer, 1, 0, 0, 0))


def write(path, text):
    def action():
        with open(path, "w") as file:
            file.write(text)

    return action


def read(path):
    def action():
        with open(path, "rb") as file:
            return None if file.read(64) else "nothing in it"

    return action


def opened(*arguments):
    return lambda: socket.socket(*arguments).close()


def beyond_two_roots():
    """The known way out of a changed root: a directory outside of it stays open, a second root is set, and .. leads up."""
    reached = 100
    outside = os.open("/", os.O_RDONLY)
    own = os.fstat(outside)
    os.makedirs("/tmp/root", exist_ok=True)
    child = os.fork()
    if child == 0:
        try:
            os.chroot("/tmp/root")
            os.fchdir(outside)
            for _ in range(20):
                os.chdir("..")
            os.chroot(".")
            is_own = os.path.samestat(os.stat("/"), own) and not os.path.exists("/opt/svc/bin")
            os._exit(errno.ENOENT if is_own else reached)
        except OSError as error:
            os._exit(error.errno)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != reached:
        raise OSError(status, os.strerror(status))


for name in CALLS:
    attempt(name, call(name))
attempt("mount", lambda: check(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)))
attempt("umount", lambda: check(libc.umount2(b"/proc", 2)))
for name, flag in {"user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000}.items():
    attempt(f"unshare {name}", lambda flag=flag: check(libc.unshare(flag)))
attempt("clone user", lambda: check(libc.syscall(220 if ARM else 56, 0x10000000 | 17, 0, 0, 0, 0)))
attempt("clone3", lambda: check(libc.syscall(435, ctypes.create_string_buffer(88), 88)))
attempt("setns", lambda: check(libc.setns(os.open("/proc/self/ns/net", os.O_RDONLY), 0)))
attempt("the host beyond two roots", beyond_two_roots)
attempt("mknod block", lambda: os.mknod("/tmp/disk", 0o600 | 0o060000, os.makedev(254, 0)))
attempt("mknod kmem", lambda: os.mknod("/tmp/kmem", 0o600 | 0o020000, os.makedev(1, 2)))
attempt("raw socket", opened(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("ping socket", opened(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP))
attempt("packet socket", opened(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt("alg socket", opened(38, socket.SOCK_SEQPACKET, 0))
attempt("vsock socket", opened(40, socket.SOCK_STREAM, 0))
attempt("netlink netfilter", opened(socket.AF_NETLINK, socket.SOCK_RAW, 12))
attempt("netlink audit", opened(socket.AF_NETLINK, socket.SOCK_RAW, 9))
attempt("sysrq", write("/proc/sysrq-trigger", "h"))
attempt("core_pattern", write("/proc/sys/kernel/core_pattern", "|/tmp/x"))
attempt("ip_forward", write("/proc/sys/net/ipv4/ip_forward", "1"))
attempt("ping_group_range", write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647"))
attempt("disable_ipv6", write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0"))
attempt("release_agent", write("/sys/fs/cgroup/memory/release_agent", "/tmp/x"))
attempt("cgroup limit", write("/sys/fs/cgroup/pids/pids.max", "max"))
attempt("cgroup2 limit", write("/sys/fs/cgroup/pids.max", "max"))
attempt("runtime directory", write("/svc/envd/envd.js", ""))
attempt("kcore", read("/proc/kcore"))
attempt("timer_list", read("/proc/timer_list"))
attempt("dev mem", read("/dev/mem"))
attempt("dev kmsg", read("/dev/kmsg"))
attempt("host disk", read("/dev/vda"))
attempt("docker socket", lambda: socket.socket(socket.AF_UNIX).connect("/var/run/docker.sock"))

# envd is the first process's only child, and does not belong to the user.
envd = next(
    (int(pid) for pid in os.listdir("/proc") if pid.isdigit() and pid != "1" and b"envd.js" in open(f"/proc/{pid}/cmdline", "rb").read()),
    0,
)
results["envd found"] = str(envd > 1)
if os.getuid() != 0:
    attempt("ptrace envd", lambda: check(libc.ptrace(16, envd, 0, 0)))
    attempt("signal envd", lambda: os.kill(envd, 9))
    attempt("signal init", lambda: os.kill(1, 9))
    attempt("envd environ", read(f"/proc/{envd}/environ"))
    attempt("envd memory", read(f"/proc/{envd}/mem"))
    attempt("envd root", lambda: os.listdir(f"/proc/{envd}/root/root"))
    attempt("init cwd", lambda: os.listdir("/proc/1/root/root"))
    attempt("oom score", write(f"/proc/{envd}/oom_score_adj", "1000"))
    attempt("shadow", read("/etc/shadow"))
json.dump(results, sys.stdout)
