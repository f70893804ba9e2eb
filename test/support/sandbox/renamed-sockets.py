"""Runs inside a sandbox: binds Unix sockets of every type, renames their files in every way, and answers through the new names. With
`ask` as its argument, asks all of them and prints as JSON what they answered."""
import json
import os
import selectors
import socket
import sys

PLACE = "/srv/sockets"
LONG = "/".join(["directory-of-a-long-path"] * 6)
#: By kind: the name of the bind, the name of the file from then on, and how it got that name.
RENAMED = {
    "beside": ("temporary.tmp", "beside"),
    "same temporary name": ("temporary.tmp", "same"),
    "other directory": ("temporary.tmp", "other/moved"),
    "renamed directory": ("first/socket", "second/socket"),
    "long path": ("temporary.tmp", LONG + "/socket"),
    "taken name": ("taken", "taken-from"),
    "linked": ("linked.tmp", "linked"),
    "in an old place": ("replaced.tmp", "replaced"),
    "blank and bytes": ("b.tmp", "caf\udce9 (deleted)"),
    "not renamed": ("plain", "plain"),
    "by a link": ("link/by", "real/by"),
    # Bound in the current directory.
    "relative": ("./relative.tmp", "relative"),
    "relative, not renamed": ("here", "here"),
    "relative, elsewhere": ("elsewhere.tmp", "other/elsewhere"),
}
TYPES = {"stream": socket.SOCK_STREAM, "seqpacket": socket.SOCK_SEQPACKET, "dgram": socket.SOCK_DGRAM}

kept = []


def names(kind, how):
    bound, real = RENAMED[kind]
    return f"{PLACE}/{how}/{bound}", f"{PLACE}/{how}/{real}"


def rename(kind, bound, real):
    if kind == "renamed directory":
        os.rename(os.path.dirname(bound), os.path.dirname(real))
    elif kind == "linked":
        os.link(bound, real)
        os.unlink(bound)
    elif bound != real and kind != "by a link":
        os.rename(bound, real)
    if kind == "taken name":
        with open(bound, "w") as file:
            file.write("another file")


def open_all(how):
    os.makedirs(f"{PLACE}/{how}")
    os.chdir(f"{PLACE}/{how}")
    for name in ("other", "first", LONG, "real"):
        os.makedirs(name)
    os.symlink("real", "link")
    stale = socket.socket(socket.AF_UNIX, TYPES[how])
    stale.bind("replaced")
    # Still open when another server's file takes its name, as after a reload.
    before = socket.socket(socket.AF_UNIX, TYPES[how])
    before.bind("before.tmp")
    os.rename("before.tmp", "relative")
    kept.append(before)
    for kind in RENAMED:
        bound, real = names(kind, how)
        server = socket.socket(socket.AF_UNIX, TYPES[how])
        server.bind(RENAMED[kind][0] if kind.startswith("relative") else bound)
        os.chmod(bound, 0o640)
        os.chown(bound, 1234, 4321)
        if how != "dgram":
            server.listen()
        rename(kind, bound, real)
        yield server


def serve():
    waiting = selectors.DefaultSelector()
    for how in TYPES:
        for server in open_all(how):
            waiting.register(server, selectors.EVENT_READ, how)
    with open(f"{PLACE}/ready", "w"):
        pass
    count = 0
    while True:
        for ready, _ in waiting.select():
            count += 1
            if ready.data == "dgram":
                _, address = ready.fileobj.recvfrom(100)
                ready.fileobj.sendto(b"answer %d" % count, address)
            else:
                with ready.fileobj.accept()[0] as client:
                    client.send(b"answer %d" % count)


def ask(how, path):
    client = socket.socket(socket.AF_UNIX, TYPES[how])
    client.settimeout(60)
    about = os.stat(path)
    os.chdir(os.path.dirname(path))
    if how == "dgram":
        client.bind(f"\0{os.getpid()} {path}"[:100])
    client.connect(os.path.basename(path))
    if how == "dgram":
        client.send(b"?")
    answer = client.recv(100).decode().split()[0]
    return f"{answer} {about.st_mode & 0o777:o} {about.st_uid} {about.st_gid}"


def ask_all():
    found = {}
    for how in TYPES:
        for kind in RENAMED:
            bound, real = names(kind, how)
            try:
                found[f"{how}, {kind}"] = ask(how, real)
            except OSError as error:
                found[f"{how}, {kind}"] = str(error)
        with open(names("taken name", how)[0]) as file:
            found[f"{how}, the other file"] = file.read()
        found[f"{how}, what is left"] = [name for name in os.listdir(f"{PLACE}/{how}") if name.endswith(".tmp")]
    print(json.dumps(found))


if sys.argv[1:] == ["ask"]:
    ask_all()
else:
    serve()
