/** Machines on which `up` meets another Node, owner of the checkout or Docker daemon than on a usual one. */

import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const scripts = join(import.meta.dirname, "../../../../scripts");

function folder(): string {
  const home = mkdtempSync(join(tmpdir(), "svc-unusual-"));
  onTestFinished(() => rmSync(home, { recursive: true }));
  mkdirSync(join(home, "bin"));
  return home;
}
const program = (home: string, name: string, text: string) =>
  writeFileSync(join(home, "bin", name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });

test("the node of a version manager, which root has no version of, is passed to root by its real directory", () => {
  const home = folder();
  const passed = () => {
    const words = `PATH=${home}/bin:$PATH; id() { echo 1000; }; sudo() { echo "$2"; }; exec() { "$@"; }; unset "\${!npm_config_@}" "\${!NPM_CONFIG_@}" NODE_EXTRA_CA_CERTS http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
      . ${scripts}/lib/root.sh; become_root x`;
    return spawnSync("bash", ["-pc", words], { encoding: "utf8" }).stdout;
  };
  program(home, "node", `exec ${process.execPath} "$@"`);
  expect(passed()).toContain(`\nPATH=${dirname(realpathSync(process.execPath))}:${home}/bin:`);
  program(home, "node", "exit 1");
  expect(passed()).toContain(`\nPATH=${home}/bin:`);
  rmSync(join(home, "bin/node"));
  symlinkSync(process.execPath, join(home, "bin/node"));
  expect(passed()).toContain(`\nPATH=${home}/bin:`);
});

test("a node that does not run as root is named with its own words, and not called too old", () => {
  const home = folder();
  program(home, "node", "echo 'No version is set for command node' >&2; exit 126");
  const { status, stderr } = spawnSync(join(scripts, "host/machine/check"), {
    encoding: "utf8",
    env: { PATH: `${home}/bin:/usr/sbin:/usr/bin:/sbin:/bin` },
  });
  expect(status).toBe(1);
  expect(stderr).toContain(`error: ${home}/bin/node does not run as root: No version is set for command node\n`);
});

test("behind the user's own sudo, a missing node may be in the home directory that sudo has dropped from PATH", () => {
  const home = folder();
  for (const name of ["dirname", "uname", "cat", "id", "stat", "sed", "apt-get", "dpkg"])
    program(home, name, `exec /usr/bin/${name} "$@"`);
  const checked = (env: Readonly<Record<string, string>>) =>
    spawnSync("/bin/bash", ["-p", join(scripts, "host/machine/check")], {
      encoding: "utf8",
      env: { PATH: `${home}/bin:/usr/sbin:/sbin`, ...env },
    }).stderr;
  expect(checked({ SUDO_UID: "1000" })).toMatch(/^error: Node\.js is missing\n.*is found without sudo in front/);
  expect(checked({})).toMatch(
    /^error: Node\.js is missing\ninstall Node\.js 20 \(20\.18\.1 or newer\) and npm, then run again\n/,
  );
});

test("a checkout whose owner the machine does not know, as of an unpacked archive, is built by root", () => {
  const words = `. ${scripts}/lib/instance.sh; id() { echo 0; }; stat() { echo 54321; }; as_owner echo ran`;
  expect(spawnSync("bash", ["-pc", words], { encoding: "utf8" })).toMatchObject({
    status: 0,
    stdout: "ran\n",
    stderr: "",
  });
});

test("a Docker daemon that is no process of this machine is named, and no settings file is written for it", () => {
  const home = folder();
  const own = join(home, "checkout/scripts");
  for (const name of ["lib", "host/engine", "host/runtime"])
    cpSync(join(scripts, name), join(own, name), { recursive: true });
  const change = (file: string, from: RegExp, by: string) => {
    const text = readFileSync(join(own, file), "utf8");
    expect(text).toMatch(from);
    writeFileSync(join(own, file), text.replace(from, by));
  };
  change("lib/engine.sh", /^docker_cli\(\).*$/m, 'docker_cli() { echo "{}"; }\nengine_pid() { :; }');
  change("lib/engine.sh", /^engine_pid\(\) \{$/m, "unused() {");
  change(
    "lib/engine.sh",
    /^engine_config_file\(\) \{$/m,
    `engine_config_file() { printf ${home}/daemon.json; return; `,
  );
  change("host/runtime/register", /^install_script$/m, "");
  const { status, stderr } = spawnSync(join(own, "host/runtime/register"), { encoding: "utf8", env: process.env });
  expect(status).toBe(1);
  expect(stderr).toMatch(/^error: the Docker daemon behind \/var\/run\/docker\.sock is no process of this machine/);
  expect(spawnSync("ls", [home], { encoding: "utf8" }).stdout).toBe("bin\ncheckout\n");
});
