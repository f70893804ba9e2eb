/** The bundle of a container as Docker makes one, with a single program in it. */

const CAPABILITIES = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FSETID",
  "CAP_FOWNER",
  "CAP_MKNOD",
  "CAP_NET_RAW",
  "CAP_SETGID",
  "CAP_SETUID",
  "CAP_SETFCAP",
  "CAP_SETPCAP",
  "CAP_NET_BIND_SERVICE",
  "CAP_SYS_CHROOT",
  "CAP_KILL",
  "CAP_AUDIT_WRITE",
];

export interface ContainerParts {
  readonly id: string;
  readonly root: string;
  readonly args: readonly string[];
  /** The path of a network namespace below /run/netns. */
  readonly network: string;
  /** The file that is mounted at /etc/hosts. */
  readonly hosts: string;
}

/** Returns the text of `config.json`. */
export function containerConfig({ id, root, args, network, hosts }: ContainerParts): string {
  const sets = ["bounding", "effective", "permitted"].map((set) => [set, CAPABILITIES]);
  const safe = ["nosuid", "noexec", "nodev"];
  return JSON.stringify({
    ociVersion: "1.0.2",
    annotations: { "org.criu.config": "/opt/svc/criu/runc.conf" },
    root: { path: root },
    process: { user: { uid: 0, gid: 0 }, args, env: ["PATH=/bin"], cwd: "/", capabilities: Object.fromEntries(sets) },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: safe },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
      {
        destination: "/dev/pts",
        type: "devpts",
        source: "devpts",
        options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
      },
      { destination: "/dev/shm", type: "tmpfs", source: "shm", options: [...safe, "mode=1777", "size=64m"] },
      { destination: "/sys", type: "sysfs", source: "sysfs", options: [...safe, "ro"] },
      { destination: "/etc/hosts", type: "bind", source: hosts, options: ["rbind", "rprivate"] },
    ],
    linux: {
      cgroupsPath: `/svc-escape/${id}`,
      namespaces: [
        { type: "mount" },
        { type: "network", path: network },
        { type: "uts" },
        { type: "pid" },
        { type: "ipc" },
      ],
    },
  });
}
