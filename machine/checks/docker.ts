/** Checks of Docker, runc, CRIU and the disks of sandboxes. Pure. */

import type { DockerSeen, Evidence } from "../evidence/evidence.ts";
import { CHECKS, problems } from "../known/checks.mjs";
import { known, WAYS_OUT } from "../known/holes.mjs";
import type { Check, Found } from "./check.ts";
import { findingsOf } from "./findings.ts";

type Judged = readonly (Found | string)[];

/** For machines that run sandboxes; a Docker daemon that does not answer is the failure of another check. */
function ofDocker(evidence: (docker: DockerSeen) => Judged): Check["evidence"] {
  return ({ docker, instance }) => {
    if (!instance.programs.includes("agent")) return [];
    return docker === undefined || docker.problem !== undefined ? undefined : evidence(docker);
  };
}

const ofUp = CHECKS.filter(({ when }) => when === "docker").map(
  ({ id }): Check => ({
    id: `docker.${id.replace(/^docker-/, "")}`,
    section: "Docker",
    severity: id === "network-inside-another" ? "warns" : "fails",
    problem: "Docker or its networks are not as the platform needs them",
    evidence: ofDocker(({ facts }) =>
      problems("docker", facts)
        .filter((one) => one.id === id)
        .map(({ problem, evidence, wayOut }) => ({ evidence: `${problem}: ${evidence}`, fix: wayOut })),
    ),
    fix: "run ./scripts/up, which names the way out",
  }),
);

function holes({ versions }: Evidence, program: "runc" | "kernel"): Judged | undefined {
  if (versions === undefined) return undefined;
  const version = program === "kernel" ? versions.kernel.release : versions.runc.version;
  return known(versions)
    .filter((hole) => hole.program === program)
    .map(({ id, what }) => ({ evidence: `${program} ${version}, ${id}: ${what}`, fix: WAYS_OUT[program] }));
}

export const dockerChecks: readonly Check[] = [
  {
    id: "docker.silent",
    section: "Docker",
    severity: "fails",
    problem: "the Docker daemon does not answer",
    evidence: ({ docker, instance }) => {
      if (!instance.programs.includes("agent")) return [];
      return docker === undefined ? undefined : docker.problem === undefined ? [] : [docker.problem];
    },
    fix: "start it: systemctl start docker, or ./scripts/up where it has started the daemon; sandboxes go on meanwhile",
  },
  ...ofUp,
  {
    id: "docker.runtime",
    section: "Docker",
    severity: "fails",
    problem: "the Docker daemon does not have the platform's runtime, so no sandbox starts",
    evidence: ofDocker(({ runtime, runtimeRuns }) => {
      if (runtime === undefined) return ["`docker info` lists no runtime svc"];
      return runtimeRuns ? [] : [`${runtime} is missing or cannot be executed`];
    }),
    fix: "run ./scripts/up: it registers the runtime again, without a restart of Docker",
  },
  {
    id: "docker.storage",
    section: "Docker",
    severity: "warns",
    problem: "the Docker daemon's storage driver gives sandboxes no disks of their own",
    evidence: ofDocker(({ storageDriver }) => {
      if (storageDriver === "overlay2") return [];
      // New installations of Docker 29 and later store images in containerd.
      const fix =
        'set "features": {"containerd-snapshotter": false} in daemon.json and restart Docker; present images and containers are not visible then';
      return [
        storageDriver === "overlayfs" ? { evidence: "overlayfs: containerd stores the images", fix } : storageDriver,
      ];
    }),
    fix: "use the driver overlay2; images and containers of the present driver are not visible then",
  },
  {
    id: "docker.seccomp",
    section: "Docker",
    severity: "fails",
    problem: "the Docker daemon has no seccomp, without which no sandbox starts",
    evidence: ofDocker(({ security }) =>
      security.some((option) => option.split(",").includes("name=seccomp"))
        ? []
        : [security.join(" ") || "no security options"],
    ),
    fix: "use a kernel and a Docker daemon with seccomp",
  },
  {
    id: "docker.live-restore",
    section: "Docker",
    severity: "warns",
    problem: "a restart of the Docker daemon ends every sandbox",
    evidence: ofDocker(({ liveRestore }) => (liveRestore ? [] : ["live-restore is off"])),
    fix: 'set "live-restore": true in daemon.json and send the daemon SIGHUP (not with swarm mode)',
  },
  {
    id: "runc.holes",
    section: "runc",
    severity: "warns",
    problem: "runc has a known hole",
    evidence: (evidence) => (evidence.instance.programs.includes("agent") ? holes(evidence, "runc") : []),
    fix: WAYS_OUT.runc,
  },
  {
    id: "kernel.holes",
    section: "kernel",
    severity: "warns",
    problem: "the kernel has a known hole that a sandbox can use",
    evidence: (evidence) => holes(evidence, "kernel"),
    fix: WAYS_OUT.kernel,
  },
  {
    id: "criu.missing",
    section: "CRIU",
    severity: "fails",
    problem: "CRIU is missing, so no sandbox can be paused or resumed with its memory",
    evidence: ({ criu, instance }) => {
      if (!instance.programs.includes("agent")) return [];
      return criu === undefined ? undefined : criu.version === undefined ? [`${criu.path} does not run`] : [];
    },
    fix: "run ./scripts/up: it installs CRIU",
  },
  {
    id: "criu.dump",
    section: "CRIU",
    severity: "fails",
    problem: "CRIU cannot dump and restore a small process",
    evidence: ({ criu, instance }) => {
      if (!instance.programs.includes("agent")) return [];
      if (criu?.version === undefined || criu.filtered === true) return undefined;
      return criu.problem === undefined ? [] : [`CRIU ${criu.version}: ${criu.problem}`];
    },
    fix: "run ./scripts/up, which looks for a CRIU that works on this kernel",
  },
  {
    id: "criu.agent",
    section: "CRIU",
    severity: "warns",
    problem: "the running agent cannot store or restore memory as it should",
    evidence: findingsOf(["memory."]),
    fix: "look at `agent --check`",
  },
  {
    id: "disks.own",
    section: "own disks",
    severity: "warns",
    problem: "sandboxes have no disks of their own",
    evidence: findingsOf(["disks."]),
    fix: "give the node loop devices and Docker's storage driver overlay2",
  },
];
