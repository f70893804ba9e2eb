#!/usr/bin/python3
"""service.py DIR PORT ACCESS_KEY: OpenStack Swift's S3 API on 127.0.0.1:PORT, as one process for each of its four servers.

The servers behind it listen on PORT + 1 to PORT + 3. ACCESS_KEY is ACCOUNT:USER; its secret is SWIFT_SECRET, since everybody sees
the words of a command. It makes the bucket SWIFT_BUCKET, if there is that variable. It needs no root, no /etc/swift and no
memcached, only a directory whose file system has user xattrs. Prints a line with `ready` and the ids of all its processes;
SIGTERM ends them, and so does the end of this process or of one of them.
"""

import ctypes
import gc
import json
import os
import pwd
import signal
import socket
import sys
import time
import types
import urllib.request

top, port, user, secret = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3], os.environ["SWIFT_SECRET"]
etc = f"{top}/etc"
ports = {"account": port + 1, "container": port + 2, "object": port + 3}
os.makedirs(etc, exist_ok=True)
os.makedirs(f"{top}/node/d1", exist_ok=True)


def write(name, text):
    with open(f"{etc}/{name}", "w") as file:
        file.write(text)


def default(bind_port):
    return f"""[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {bind_port}
workers = 0
user = {pwd.getpwuid(os.geteuid()).pw_name}
swift_dir = {etc}
devices = {top}/node
mount_check = false
fallocate_reserve = {os.environ.get("SWIFT_RESERVE", "1%")}
log_level = WARNING
"""


write(
    "swift.conf",
    "[swift-hash]\nswift_hash_path_suffix = tests\nswift_hash_path_prefix = tests\n"
    "[storage-policy:0]\nname = gold\ndefault = yes\n",
)
for name, bind_port in ports.items():
    # The long container_update_timeout keeps a busy machine from losing names in listings.
    write(
        f"{name}-server.conf",
        default(bind_port)
        + f"""[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{name}
node_timeout = 30
conn_timeout = 5
container_update_timeout = 30
""",
    )
filters = "catch_errors gatekeeper healthcheck cache listing_formats s3api tempauth bulk slo dlo".split()
settings = {
    "cache": "paste.filter_factory = tests_cache:factory",
    "slo": "max_manifest_segments = 10000",
    "s3api": "location = us-east-1\nmax_upload_part_num = 10000",
    "tempauth": f"user_{user.replace(':', '_')} = {secret} .admin",
}


def section(name):
    use = "" if name == "cache" else f"use = egg:swift#{name}\n"
    return f"[filter:{name}]\n{use}{settings.get(name, '')}\n"


# Without error_suppression_interval = 0 one full disk would make every request fail for a minute.
write(
    "proxy-server.conf",
    default(port)
    + f"[pipeline:main]\npipeline = {' '.join(filters)} proxy-server\n"
    + "".join(section(name) for name in filters)
    + """[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
node_timeout = 30
conn_timeout = 5
error_suppression_interval = 0
""",
)

from swift.common import utils  # noqa: E402

# Once, before the forks: it costs each process half a second.
utils.eventlet_monkey_patch()
# Instead of /etc/swift.
utils.set_swift_dir(etc)
import paste.deploy.loadwsgi  # noqa: E402,F401
import pkg_resources  # noqa: E402,F401
import swift.account.server  # noqa: E402,F401
import swift.container.server  # noqa: E402,F401
import swift.obj.server  # noqa: E402,F401
import swift.proxy.server  # noqa: E402,F401

for name in filters:
    if name != "cache":
        __import__("swift.common.middleware." + name.replace("s3api", "s3api.s3api"))
from swift.common.ring import RingBuilder  # noqa: E402
from swift.common.wsgi import run_wsgi  # noqa: E402


class Cache:
    """The proxy is one process, so a dictionary does the work of a memcached."""

    def __init__(self):
        self.values = {}

    def get(self, key, raise_on_error=False):
        value, until = self.values.get(key, (None, 0))
        return json.loads(value) if until > time.time() else None

    def set(self, key, value, serialize=True, time=0, **_):
        self.values[key] = (json.dumps(value), globals()["time"].time() + (time or 3600))

    def incr(self, key, delta=1, time=0):
        value = max(0, int(self.get(key) or 0) + delta)
        self.set(key, value, time=time)
        return value

    def delete(self, key, server_key=None):
        self.values.pop(key, None)


class CacheFilter:
    def __init__(self, app):
        self.app, self.cache = app, Cache()

    def __call__(self, environment, start):
        environment["swift.cache"] = self.cache
        return self.app(environment, start)


sys.modules["tests_cache"] = types.SimpleNamespace(
    factory=lambda _, **__: CacheFilter, __name__="tests_cache", __spec__=None
)
for name, bind_port in ports.items():
    if os.path.exists(f"{etc}/{name}.ring.gz"):
        continue
    builder = RingBuilder(4, 1, 0)
    device = dict(id=0, region=1, zone=1, ip="127.0.0.1", port=bind_port, device="d1", weight=1, meta="")
    builder.add_dev(dict(device, replication_ip="127.0.0.1", replication_port=bind_port))
    builder.rebalance()
    builder.get_ring().save(f"{etc}/{name}.ring.gz")

gc.freeze()
DIES_WITH_PARENT = 1
children = {}
for name in [*ports, "proxy"]:
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
        log = os.open(f"{top}/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os._exit(run_wsgi(f"{etc}/{name}-server.conf", f"{name}-server", verbose=True) or 0)
    children[pid] = name


def stop(*_):
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
for _ in range(600):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=5).read()
        for bind_port in ports.values():
            socket.create_connection(("127.0.0.1", bind_port), 1).close()
        break
    except OSError:
        time.sleep(0.1)
else:
    stop()


def make_bucket(name):
    """By Swift's own API, which signs nothing."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/auth/v1.0", headers={"X-Storage-User": user, "X-Storage-Pass": secret}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        url, token = answer.headers["X-Storage-Url"], answer.headers["X-Auth-Token"]
    made = urllib.request.Request(f"{url}/{name}", method="PUT", headers={"X-Auth-Token": token})
    urllib.request.urlopen(made, timeout=60).read()


if "SWIFT_BUCKET" in os.environ:
    make_bucket(os.environ["SWIFT_BUCKET"])
print("ready", os.getpid(), *children, flush=True)
pid, status = os.wait()
# One without the others answers wrongly: an object would be missing in lists.
print("ended:", children.pop(pid, pid), status, file=sys.stderr, flush=True)
stop()
