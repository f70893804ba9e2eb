/** What the Docker daemon says of itself, and the versions of programs that have known holes. */

import { accessSync, constants, existsSync, readFileSync, realpathSync } from "node:fs";
import { version as build, release } from "node:os";
import { gunzipSync } from "node:zlib";
import { PATH } from "../base/commands.ts";
import { ask } from "../base/http.ts";
import type { Machine } from "../base/this-machine.ts";
import type { VersionFacts } from "../known/holes.mjs";
import type { DockerSeen } from "./evidence.ts";

interface Info {
  readonly ServerVersion?: string;
  readonly Driver?: string;
  readonly LiveRestoreEnabled?: boolean;
  readonly SecurityOptions?: readonly string[] | null;
  readonly Runtimes?: Readonly<Record<string, { readonly path?: string }>>;
  readonly DockerRootDir?: string;
}

export async function askDocker(machine: Machine): Promise<DockerSeen> {
  const socket = machine.places.dockerSocket;
  const asked = async (path: string): Promise<object> => {
    const { status, text } = await ask({ url: `http://docker${path}`, socketPath: socket });
    if (status !== 200) throw new Error(`${socket}: ${path} answered ${status}`);
    return JSON.parse(text) as object;
  };
  let problem: string | undefined;
  const [info, dockerVersion] = await Promise.all([asked("/info"), asked("/version")]).catch((error: unknown) => {
    problem = error instanceof Error ? error.message : String(error);
    return [{}, {}];
  });
  const { ServerVersion = "", Driver = "", LiveRestoreEnabled = false, SecurityOptions, Runtimes = {} } = info as Info;
  const runtime = Runtimes["svc"]?.path;
  return {
    socket,
    problem,
    version: ServerVersion,
    storageDriver: Driver,
    liveRestore: LiveRestoreEnabled,
    security: SecurityOptions ?? [],
    runtime,
    runtimeRuns: runtime !== undefined && isProgram(runtime),
    facts: {
      subnet: machine.instance.setting("agent", "SVC_SUBNET") ?? "255.255.255.255/32",
      networkName: machine.instance.network,
      docker: info,
      dockerVersion,
      routes: await routes(machine),
    },
  };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface Route {
  readonly type?: string;
  readonly dst: string;
  readonly dev?: string;
}

/** Networks that this machine reaches over links of others; the default route is no network. */
async function routes({ run, instance }: Machine): Promise<readonly object[]> {
  const { status, stdout } = await run("ip", ["-j", "-4", "route", "show", "table", "all"]);
  if (status !== 0) return [];
  const own = new RegExp(`^${instance.network}(-[0-9]+|-probe|0)$`);
  return (JSON.parse(stdout) as readonly Route[])
    .filter(
      ({ type = "unicast", dst, dev = "" }) => type === "unicast" && dst !== "default" && dev !== "" && !own.test(dev),
    )
    .map(({ dst, dev = "" }) => ({ range: dst, words: `${dst} of the link ${dev}` }));
}

export async function versionsOf({ run }: Machine): Promise<VersionFacts> {
  const { stdout } = await run("runc", ["--version"]);
  return {
    runc: { version: /version (\S+)/.exec(stdout)?.[1] ?? "", changes: await changesOf("runc", run) },
    kernel: { release: release(), build: build() },
  };
}

/** The changelog of the package of a program; empty without one: then only the version counts. */
async function changesOf(program: string, run: Machine["run"]): Promise<string> {
  const found = PATH.split(":")
    .map((folder) => `${folder}/${program}`)
    .find((path) => existsSync(path));
  if (found === undefined) return "";
  const path = realpathSync(found);
  // Where /bin is a link to /usr/bin, the package may know the file by either name.
  for (const name of [path, path.replace(/^\/usr/, "")]) {
    const { stdout } = await run("dpkg-query", ["-S", name]);
    const owner = /^([^:]+): /.exec(stdout)?.[1];
    if (owner === undefined) continue;
    for (const file of ["changelog.Debian.gz", "changelog.gz"]) {
      const place = `/usr/share/doc/${owner}/${file}`;
      if (existsSync(place)) return gunzipSync(readFileSync(place)).toString("utf8");
    }
  }
  return "";
}
