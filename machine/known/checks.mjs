// The known problems of a machine, as data. Each has an id, the moment at which it can be seen, whether it stops the set-up, the
// problem in words, the evidence (a function of the facts that facts.mjs gathers: what was found, or undefined) and the way out.
// Pure: reads and prints nothing.

const MIB = 1024 * 1024;
const NEEDED_DISK_MIB = 6_000;
const NEEDED_MEMORY_MIB = 1_800;
/** The firewall of sandboxes refuses before the routing, which earlier kernels cannot. */
const NEEDED_LINUX = [5, 9];
/** make, the shell and mmdebstrap's hooks each give some of these a meaning of their own. */
const UNUSABLE_IN_PATHS = /['"\\$`:#%&|;<>(){}[\]*?!\n\t]/;

const securityOption = (docker, name) =>
  (docker.SecurityOptions ?? []).find((option) => option.split(",").includes(`name=${name}`));

export const CHECKS = [
  {
    id: "checkout-path",
    when: "machine",
    stops: true,
    problem: "the path of this checkout has a character that compilers and shells read as their own",
    evidence: ({ checkout }) => {
      const found = UNUSABLE_IN_PATHS.exec(checkout);
      return found === null ? undefined : `${JSON.stringify(found[0])} in ${checkout}`;
    },
    wayOut: "move the checkout to a path of letters, digits, spaces, dots, hyphens and underscores, and run up there",
  },
  {
    id: "old-kernel",
    when: "machine",
    stops: true,
    problem: "the kernel of this machine is too old for the firewall of sandboxes",
    evidence: ({ release, programs }) =>
      programs.includes("agent") && isBefore(release, NEEDED_LINUX)
        ? `it is Linux ${release}, and ${NEEDED_LINUX.join(".")} is the oldest that can`
        : undefined,
    wayOut: "boot a newer kernel: Debian 12 has 6.1 (apt-get install linux-image-amd64, then reboot)",
  },
  {
    id: "cgroups",
    when: "machine",
    stops: true,
    problem: "cgroups are not mounted",
    evidence: ({ mounts }) =>
      mounts.some(({ place }) => place.startsWith("/sys/fs/cgroup")) ? undefined : "/proc/mounts has no /sys/fs/cgroup",
    wayOut: "mount the cgroup file system below /sys/fs/cgroup",
  },
  {
    id: "disk-space",
    when: "machine",
    stops: true,
    problem: "there is too little free disk space below /var/lib",
    evidence: ({ freeBytes }) =>
      freeBytes >= NEEDED_DISK_MIB * MIB ? undefined : `${Math.floor(freeBytes / MIB)} MiB are free`,
    wayOut: "make room: 6 GiB at least, 20 GiB to be comfortable",
  },
  {
    id: "memory",
    when: "machine",
    stops: true,
    problem: "this machine has too little memory",
    evidence: ({ memoryBytes }) =>
      memoryBytes >= NEEDED_MEMORY_MIB * MIB ? undefined : `it has ${Math.floor(memoryBytes / MIB)} MiB`,
    wayOut: "2 GiB are the least the platform needs",
  },
  {
    id: "directory-read-only",
    when: "machine",
    stops: true,
    problem: "a directory that the platform writes to is on a read-only file system",
    evidence: ({ readOnly }) => readOnly[0],
    wayOut:
      "make it writable for root, or mount a writable file system at its place below it: /opt/svc, /var/lib/svc, /etc/svc",
  },
  {
    id: "programs-noexec",
    when: "machine",
    stops: true,
    problem: "the file system of the platform's programs is mounted noexec",
    evidence: ({ noexec }) => noexec[0],
    wayOut: "mount it without noexec, or mount another file system at /opt/svc",
  },
  {
    id: "docker-userns-remap",
    when: "docker",
    stops: true,
    problem:
      "the Docker daemon maps users of containers to others (userns-remap), and sandboxes need the machine's own",
    evidence: ({ docker }) => securityOption(docker, "userns"),
    wayOut:
      'remove "userns-remap" from daemon.json and restart the Docker daemon (its images and containers are then in another data root), or give the platform a machine of its own',
  },
  {
    id: "docker-rootless",
    when: "docker",
    stops: true,
    problem: "the Docker daemon runs without root, and sandboxes need networks and limits that only root can set",
    evidence: ({ docker }) => securityOption(docker, "rootless"),
    wayOut: "install a Docker daemon that runs as root beside it: docker.io or docker-ce",
  },
  {
    id: "docker-is-another-program",
    when: "docker",
    stops: true,
    problem: "the program behind /var/run/docker.sock is not Docker, and does not know its runtimes",
    evidence: ({ dockerVersion }) =>
      (dockerVersion.Components ?? []).map(({ Name }) => Name).find((name) => /podman/i.test(name)),
    wayOut: "install docker.io or docker-ce, and remove podman-docker or its socket",
  },
  {
    id: "docker-is-elsewhere",
    when: "docker",
    stops: true,
    problem: "the Docker daemon runs in a machine of its own, and cannot start the platform's runtime",
    evidence: ({ docker }) => /^Docker Desktop$|Rancher Desktop/.exec(docker.OperatingSystem ?? "")?.[0],
    wayOut:
      "install docker.io or docker-ce here, after it is switched off for this machine (Docker Desktop: Settings, Resources, WSL integration)",
  },
  {
    id: "docker-is-a-snap",
    when: "docker",
    stops: true,
    problem: "the Docker daemon is a snap, which cannot start programs below /opt",
    evidence: ({ docker }) => (docker.DockerRootDir?.startsWith("/var/snap/") ? docker.DockerRootDir : undefined),
    wayOut: "remove the snap 'docker' and install docker.io or docker-ce",
  },
  {
    id: "network-taken",
    when: "docker",
    stops: true,
    problem: "another network of this machine has addresses of the sandboxes' subnet",
    evidence: ({ routes, subnet }) => routes.find((route) => within(route.range, subnet))?.words,
    wayOut: "choose a free private range for sandboxes: SVC_SUBNET=10.230.0.0/16 in .svc/config.env",
  },
  {
    id: "network-inside-another",
    when: "docker",
    stops: false,
    problem:
      "the sandboxes' subnet is a part of another network, whose addresses in that range cannot be reached from this machine",
    evidence: ({ routes, subnet }) =>
      routes.find(({ range }) => !within(range, subnet) && within(subnet, range) && !isHalfOfAll(range))?.words,
    wayOut: "choose another range for sandboxes if something there matters: SVC_SUBNET in .svc/config.env",
  },
  {
    id: "database-damaged",
    when: "start",
    stops: true,
    problem: "a database of the platform is damaged",
    evidence: ({ damaged }) => damaged[0],
    wayOut:
      "keep a copy of that file, then restore your backup: docs/operating/backup.md. Do not delete it: without it nothing of what nodes store can be found",
  },
  {
    id: "database-disk-full",
    when: "start",
    stops: true,
    problem: "the disk of a database of the platform is full",
    evidence: ({ full }) => full[0],
    wayOut: "make room there: the program starts by itself then. Do not delete svc.db or agent.db",
  },
];

/** The problems among the facts at this moment, those that stop first. */
export function problems(when, facts) {
  const found = CHECKS.filter((check) => check.when === when)
    .map(({ id, stops, problem, evidence, wayOut }) => ({ id, stops, problem, evidence: evidence(facts), wayOut }))
    .filter(({ evidence }) => evidence !== undefined);
  return found.toSorted((a, b) => Number(b.stops) - Number(a.stops));
}

/** Whether a release of Linux, as `uname -r` names it, is older; one that names no version is not. */
function isBefore(release, [major, minor]) {
  const [, ...found] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  const [ofMajor = major, ofMinor = minor] = found.map(Number);
  return ofMajor < major || (ofMajor === major && ofMinor < minor);
}

/** VPNs write their default route in two halves, so that it does not replace the one there was. */
function isHalfOfAll(range) {
  return range.endsWith("/1") || range.endsWith("/0");
}

/** Whether the IPv4 range is a part of the other, or the same. */
export function within(range, other) {
  const [inner, innerLength] = numbers(range);
  const [outer, outerLength] = numbers(other);
  const hosts = 2 ** (32 - outerLength);
  return innerLength >= outerLength && Math.floor(inner / hosts) === Math.floor(outer / hosts);
}

function numbers(range) {
  const [address, length = "32"] = range.split("/");
  return [address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0), Number(length)];
}
