/**
 * Registries of npm and Python packages inside a sandbox, as plain files behind Python's web server: npm, npx and pip install from
 * them as from the public ones, and no packet leaves the machine.
 */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "e2b";
import { checkout } from "../platform/platform.ts";
import { run } from "../platform/programs.ts";

const HOME = "/home/user/mirror";
const PORT = 8500;
/** Beside other programs, on a machine with two cores. */
const SLOW = { timeoutMs: 200_000 };

/** Environment in which npm and pip use the registries: for `envs` of a sandbox. */
export const MIRROR_ENVS = {
  npm_config_registry: `http://127.0.0.1:${PORT}/npm/`,
  npm_config_audit: "false",
  PIP_INDEX_URL: `http://127.0.0.1:${PORT}/pypi/`,
};

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** Starts both registries, empty. */
export async function serveMirror(sandbox: Sandbox): Promise<void> {
  await sandbox.commands.run(`mkdir -p ${HOME}/npm/- ${HOME}/pypi`);
  await sandbox.commands.run(`exec python3 -m http.server ${PORT} -d ${HOME} >/dev/null 2>&1`, {
    background: true,
    timeoutMs: 0,
  });
  await sandbox.commands.run(`until ss -Htln sport = :${PORT} | grep -q .; do sleep 0.05; done`);
}

/** Publishes packages of this checkout's node_modules. What they depend on must be among them. */
export async function publishInstalled(sandbox: Sandbox, names: readonly string[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "svc-mirror-"));
  try {
    for (const name of names) {
      const manifest = JSON.parse(await readFile(`${checkout}node_modules/${name}/package.json`, "utf8")) as Manifest;
      const archive = join(directory, archiveOf(manifest));
      // The links of a checkout whose node_modules is itself a link lead to the files.
      await run("tar", ["-czf", archive, "-C", `${checkout}node_modules/`, `--transform=s,^${name},package,`, name]);
      await sandbox.files.write(`${HOME}/npm/-/${archiveOf(manifest)}`, new Blob([await readFile(archive)]));
      const optional = Object.entries(manifest.optionalDependencies ?? {}).filter(([other]) => names.includes(other));
      await describe(sandbox, { ...manifest, optionalDependencies: Object.fromEntries(optional) });
    }
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Publishes the npm package in a directory of the sandbox. */
export async function publishDirectory(sandbox: Sandbox, directory: string): Promise<void> {
  await sandbox.commands.run(`npm pack --silent --pack-destination ${HOME}/npm/- ${directory}`, SLOW);
  await describe(sandbox, JSON.parse(await sandbox.files.read(`${directory}/package.json`)) as Manifest);
}

/** Publishes the Python package in a directory of the sandbox, as a wheel. */
export async function publishPython(sandbox: Sandbox, name: string, directory: string): Promise<void> {
  await sandbox.commands.run(
    `pip wheel -q --no-deps --no-index --no-build-isolation -w ${HOME}/pypi/${name} ${directory}`,
    SLOW,
  );
}

function archiveOf({ name, version }: Manifest): string {
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`;
}

async function describe(sandbox: Sandbox, manifest: Manifest): Promise<void> {
  const { name, version } = manifest;
  const dist = { tarball: `${MIRROR_ENVS.npm_config_registry}-/${archiveOf(manifest)}` };
  const document = { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } };
  await sandbox.files.write(`${HOME}/npm/${name}`, JSON.stringify(document));
}
