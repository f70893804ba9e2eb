import { expect, test } from "vitest";
import { createLimitWatch } from "../../../../agent/host/limit-watch.ts";
import { type HostLimits, readHostLimits } from "../../../../agent/host/limits.ts";
import { createLog } from "../../../../shared/program/log.ts";

const FILES: Readonly<Record<string, string>> = {
  "/proc/loadavg": "13.67 13.04 8.32 23/494 30181\n",
  "/proc/sys/kernel/pid_max": "32768\n",
  "/proc/sys/kernel/threads-max": "192730\n",
  "/proc/sys/fs/file-nr": "1919\t0\t2466170\n",
  "/proc/sys/kernel/pty/nr": "3\n",
  "/proc/sys/kernel/pty/max": "4096\n",
  "/proc/sys/kernel/pty/reserve": "1024\n",
  "/proc/sys/fs/aio-nr": "128\n",
  "/proc/sys/fs/aio-max-nr": "65536\n",
  "/proc/sys/net/netfilter/nf_conntrack_count": "2472\n",
  "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
  "/proc/sys/net/ipv4/tcp_mem": "287898\t383867\t575796\n",
  "/proc/sys/net/ipv4/udp_mem": "575796\t767734\t1151592\n",
  "/proc/sys/net/ipv4/tcp_max_orphans": "131072\n",
  "/proc/key-users": "    0:    12 11/11 6/1000000 250/25000000\n 1000:     1 1/1 1/200 9/20000\n",
  "/proc/self/status": "Name:\tnode\nSigQ:\t2/96365\n",
  "/proc/net/sockstat":
    "sockets: used 111\nTCP: inuse 11 orphan 7 tw 313 alloc 27 mem 155\nUDP: inuse 1 mem 4\nUDPLITE: inuse 0\n",
};

test("used and most of each shared limit are read from the kernel's files", () => {
  expect(readHostLimits((path) => FILES[path] ?? "")).toEqual({
    connections: { used: 2472, max: 262_144 },
    open_files: { used: 1919, max: 2_466_170 },
    processes: { used: 494, max: 32_768 },
    terminals: { used: 3, max: 3072 },
    async_io: { used: 128, max: 65_536 },
    keys_of_root: { used: 6, max: 1_000_000 },
    signals_of_root: { used: 2, max: 96_365 },
    tcp_memory_pages: { used: 155, max: 575_796 },
    udp_memory_pages: { used: 4, max: 1_151_592 },
    orphaned_connections: { used: 7, max: 131_072 },
  });
});

test("limits that the kernel does not have are left out", () => {
  expect(readHostLimits(() => "")).toEqual({});
});

test("this machine has the limits that every kernel has", () => {
  for (const name of ["open_files", "processes", "tcp_memory_pages"] as const) {
    const { used, max } = readHostLimits()[name] ?? { used: 0, max: 0 };
    expect(used).toBeGreaterThanOrEqual(0);
    expect(max).toBeGreaterThan(used);
  }
});

async function watching(limits: HostLimits) {
  const warnings: unknown[] = [];
  const state = { limits, reads: 0 };
  const log = createLog({ component: "test", level: "silent" });
  log.warn = (fields: unknown) => void warnings.push(fields);
  const read = () => {
    state.reads += 1;
    return state.limits;
  };
  const watch = createLimitWatch({ read, log, everyMs: 1 });
  expect(watch.refusal()).toBeUndefined();
  watch.start();
  const become = async (next: HostLimits) => {
    state.limits = next;
    const before = state.reads;
    await expect.poll(() => state.reads).toBeGreaterThan(before + 1);
  };
  await become(limits);
  return { watch, warnings, become };
}

test("a limit that is nearly used up is logged once, and again after it was free in between", async () => {
  const { watch, warnings, become } = await watching({ async_io: { used: 80, max: 100 } });
  await become({ async_io: { used: 75, max: 100 } });
  await become({ async_io: { used: 85, max: 100 } });
  expect(warnings).toEqual([{ limit: "async_io", used: 80, max: 100 }]);
  await become({ async_io: { used: 10, max: 100 } });
  await become({ async_io: { used: 99, max: 100 } });
  expect(warnings).toHaveLength(2);
  expect(watch.seen()).toEqual({ async_io: { used: 99, max: 100 } });
  await watch.stop();
});

test("new sandboxes are refused before what every sandbox needs is used up", async () => {
  const { watch, become } = await watching({ open_files: { used: 94, max: 100 } });
  expect(watch.refusal()).toBeUndefined();
  await become({ open_files: { used: 95, max: 100 } });
  expect(watch.refusal()).toMatchObject({
    code: "node_busy",
    message: "the machine uses 95 of 100 open files: no sandbox can begin",
  });
  await watch.stop();
});

test("no sandbox is refused for a limit that one sandbox alone could use up", async () => {
  const { watch } = await watching({ signals_of_root: { used: 100, max: 100 }, async_io: { used: 100, max: 100 } });
  expect(watch.refusal()).toBeUndefined();
  await watch.stop();
});
