/** The step of `up` that installs the distribution's packages, on machines whose apt is not that of a new Debian. */

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const scripts = join(import.meta.dirname, "../../../../scripts");

/** What apt-get does in place of installing: shell text for `update` and for `install`; and the environment of the step. */
interface Apt {
  readonly update?: string;
  readonly install?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** In place of a package that apt offers: docker.io recommends docker-cli. */
const SPLIT = "docker.io:docker-cli";

/** The step, on a machine that lacks the packages `lacks` and has no Docker daemon, nor the program `docker` where that is false. */
function install(
  lacks: readonly string[],
  { update = "", install = "", env = {} }: Apt,
  offers: readonly string[] = [],
  docker = true,
) {
  const home = mkdtempSync(join(tmpdir(), "svc-packages-"));
  if (docker) writeFileSync(join(home, "docker"), "");
  onTestFinished(() => rmSync(home, { recursive: true }));
  const own = join(home, "checkout/scripts");
  cpSync(join(scripts, "lib"), join(own, "lib"), { recursive: true });
  mkdirSync(join(own, "host/machine"), { recursive: true });
  mkdirSync(join(home, "bin"));
  const put = (name: string, text: string) =>
    writeFileSync(join(home, "bin", name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  const change = (file: string, to: string, ...changes: readonly (readonly [RegExp, string])[]) => {
    let text = readFileSync(join(scripts, file), "utf8");
    for (const [from, by] of changes) {
      expect(text).toMatch(from);
      text = text.replace(from, by);
    }
    writeFileSync(join(own, to), text, { mode: 0o755 });
  };
  change("lib/engine.sh", "lib/engine.sh", [/^engine_answers\(\).*$/m, "engine_answers() { false; }"]);
  change("lib/instance.sh", "lib/instance.sh", [/^SHARED_STATE=.*$/m, `SHARED_STATE=${home}/state`]);
  change(
    "host/machine/packages",
    "host/machine/packages",
    [/command -v dockerd/, "false"],
    [/command -v docker >/, '[ -e "$TRIAL/docker" ] >'],
    [/timeout 3 getent/, "true"],
    [/sleep 5/, "sleep 0.01"],
  );
  put("dpkg-query", `case " ${lacks.join(" ")} " in *" \${@: -1} "*) exit 1 ;; esac; echo -n installed`);
  put(
    "apt-cache",
    // The real one, too, goes on writing after the line that counts.
    `offers=" ${offers.join(" ")} "
case $1 in depends) case $offers in *" ${SPLIT} "*) printf '%s\\n' docker.io '  Recommends: docker-cli'; sleep 0.05; echo '  Recommends: git' ;; esac; exit ;; esac
case $offers in *" $2 "*) found=5:29.1.0-1 ;; *) found='(none)' ;; esac
printf 'x:\\n  Candidate: %s\\n' "$found"; sleep 0.05; echo '  Version table:'`,
  );
  put(
    "apt-get",
    `printf '%s\\n' "$*" >>${home}/calls\ncase " $* " in *" update "*)\n${update}\n;;*" install "*)\n${install}\n;;esac\nexit 0`,
  );
  const { status, stdout, stderr } = spawnSync(join(own, "host/machine/packages"), {
    encoding: "utf8",
    env: { PATH: `${home}/bin:${process.env["PATH"]}`, TRIAL: home, ...env },
  });
  const textOf = (name: string) => (existsSync(join(home, name)) ? readFileSync(join(home, name), "utf8") : "");
  return { status, said: stdout + stderr, calls: textOf("calls"), noted: textOf("state/packages") };
}

const NOT_SIGNED = "The repository 'https://paid.example/debian bookworm InRelease' is not signed.";

test("a source that does not answer, as one that wants to be paid, does not keep what the others have from being installed", () => {
  const update = `echo "Err:4 https://paid.example/debian bookworm InRelease"; echo "E: ${NOT_SIGNED}" >&2; exit 100`;
  const { status, said, noted } = install(["kmod"], { update });
  expect(status).toBe(0);
  expect(said).toContain(`installed 1: kmod, though a source of apt does not answer: ${NOT_SIGNED}`);
  expect(noted).toBe("kmod\n");
  const failed = install(["kmod"], { update, install: 'echo "E: Unable to locate package kmod" >&2; exit 100' });
  expect(failed.status).toBe(1);
  expect(failed.said).toContain(`error: apt cannot read its package lists: ${NOT_SIGNED}`);
  expect(failed.noted).toBe("");
});

test("apt waits for a machine that upgrades itself, which holds the lock of dpkg or that of the lists", () => {
  const update = `[ "$(wc -l <$TRIAL/calls)" -ge 3 ] || { echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)" >&2; exit 100; }`;
  const { status, said, calls } = install(["kmod"], { update });
  expect(status).toBe(0);
  expect(said).toMatch(/installed 1: kmod\n$/);
  expect(calls.match(/DPkg::Lock::Timeout=600/g)).toHaveLength(4);
});

test("below a maintainer script apt does not wait for the lock, which is held by the apt that waits for the script", () => {
  const { status, calls } = install(["kmod"], { env: { DPKG_MAINTSCRIPT_NAME: "postinst" } });
  expect(status).toBe(0);
  expect(calls.match(/DPkg::Lock::Timeout=0 /g)).toHaveLength(2);
});

test("no package of the machine is removed: the failure names what apt would remove, and settings that a package left stay", () => {
  const { status, said, calls } = install(["docker.io"], {
    install: `printf 'The following packages will be REMOVED:\\n  podman-docker\\n  cockpit-podman\\nThe following NEW packages will be installed:\\n  docker.io\\n'
      echo 'E: Packages need to be removed but remove is disabled.' >&2; exit 100`,
  });
  expect(status).toBe(1);
  expect(said).toContain("error: apt would remove other packages for docker.io: podman-docker cockpit-podman\n");
  expect(calls).toMatch(
    /install -y --no-install-recommends --no-remove -o Dpkg::Options::=--force-confold docker\.io\n$/,
  );
});

test.each([
  [
    "has Docker's own containerd, as a node of Kubernetes, and its source",
    ["docker.io", "docker-ce", "docker-ce-cli"],
    ["docker-ce"],
    "docker-ce",
  ],
  ["has Docker's own client, and its source", ["docker.io", "docker-ce", "containerd.io"], ["docker-ce"], "docker-ce"],
  ["has Docker's own containerd without its source", ["docker.io", "docker-ce", "docker-ce-cli"], [], "docker.io"],
  [
    "has nothing of Docker, and its source",
    ["docker.io", "docker-ce", "docker-ce-cli", "containerd.io"],
    ["docker-ce"],
    "docker.io",
  ],
])("a machine that %s gets the Docker that fits", (_what, lacks, offers, wanted) => {
  const { status, noted } = install(lacks, {}, offers);
  expect([status, noted]).toEqual([0, `${wanted}\n`]);
});

test.each([
  [
    "with a docker.io that leaves it to docker-cli",
    ["docker.io", "docker-cli"],
    ["docker-cli", SPLIT],
    "docker.io\ndocker-cli\n",
  ],
  ["with such a docker.io that is there", ["docker-cli"], ["docker-cli", SPLIT], "docker-cli\n"],
  ["with a docker.io that brings it", ["docker.io", "docker-cli"], [], "docker.io\n"],
  ["with one that brings it, beside a later release's docker-cli", ["docker.io"], ["docker-cli"], "docker.io\n"],
])("a machine without the program docker gets it, %s", (_what, lacks, offers, wanted) => {
  const { status, noted } = install(lacks, {}, offers, false);
  expect([status, noted]).toEqual([0, wanted]);
});

test("another failure of apt is in its own words", () => {
  const { status, said } = install(["kmod"], { install: 'echo "E: You do not have enough free space" >&2; exit 100' });
  expect(status).toBe(1);
  expect(said).toContain("error: apt could not install kmod: You do not have enough free space\n");
});
