"""Runs inside a sandbox. `attack`: takes what the kernel counts for all sandboxes together, until it gets no more or has
what would leave nothing for the others, prints what it got and holds it. `need`: prints what an ordinary program gets."""
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"
IO_SETUP, TIMER_CREATE = (0, 107) if ARM else (206, 222)
F_GETPIPE_SZ = 1032
REAL_TIME_SIGNAL = 40
held = []


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def inotify():
    return checked(libc.inotify_init1(0))


def queue(number):
    return checked(libc.mq_open(b"/use-up-%d" % number, os.O_CREAT | os.O_RDWR, 0o600, None))


def queued_signal():
    checked(libc.sigqueue(os.getpid(), REAL_TIME_SIGNAL, None))


def timer():
    made = ctypes.c_int()
    checked(libc.syscall(TIMER_CREATE, 0, None, ctypes.byref(made)))


def requests(number):
    context = ctypes.c_ulong()
    checked(libc.syscall(IO_SETUP, number, ctypes.byref(context)))


def watch(directory):
    instance = inotify()
    checked(libc.inotify_add_watch(instance, directory.encode(), 0xFFF))


def buffers():
    """Bytes that wait in connections to itself, which nobody reads."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    sent = 0
    for _ in range(60):
        one = socket.create_connection(listener.getsockname())
        held.extend([one, listener.accept()[0]])
        one.setblocking(False)
        try:
            while True:
                sent += one.send(bytes(65536))
        except BlockingIOError:
            pass
    return sent


def up_to(count, take):
    """How often it worked."""
    for done in range(count):
        try:
            take(done)
        except OSError:
            return done
    return count


def attack():
    signal.pthread_sigmask(signal.SIG_BLOCK, [REAL_TIME_SIGNAL])
    print(json.dumps({
        "terminals": up_to(4_000, lambda _: os.openpty()),
        "pipes": up_to(1_500, lambda _: os.pipe()),
        "watches": up_to(9_000, lambda _: inotify()),
        "queues": up_to(200, queue),
        "signals": up_to(150_000, lambda _: queued_signal()),
        "requests": up_to(4, lambda _: requests(40_000)),
        "buffered bytes": buffers(),
    }), flush=True)
    time.sleep(600)


def attempt(action):
    try:
        return action()
    except OSError as error:
        return os.strerror(error.errno)


def works(action):
    return attempt(lambda: action() and None) or "works"


def need():
    signal.pthread_sigmask(signal.SIG_BLOCK, [REAL_TIME_SIGNAL])
    print(json.dumps({
        "terminal": works(os.openpty),
        "pipe": attempt(lambda: fcntl.fcntl(os.pipe()[0], F_GETPIPE_SZ)),
        "watch": works(lambda: watch("/tmp")),
        "queue": works(lambda: queue(0)),
        "queued signal": works(queued_signal),
        "timer": works(timer),
        "requests": works(lambda: requests(1_000)),
        "ordinary signals and timers": os.system("timeout 0.1 sleep 5 2>/dev/null") >> 8,
        "limits": {
            "signals": resource.getrlimit(resource.RLIMIT_SIGPENDING)[1],
            "queues": resource.getrlimit(getattr(resource, "RLIMIT_MSGQUEUE", 12))[1],
        },
    }))


{"attack": attack, "need": need}[sys.argv[1]]()
