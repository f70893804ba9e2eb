/**
 * `npm run build`: bundles each program to one file in dist/, with the parts that cannot be bundled beside it, so that
 * dist/ runs without this checkout. `npm run build -- envd` builds only the named programs, and
 * `npm run build -- --main test/support/criu/agent.ts` only this file, for a test that starts a program of its own.
 */

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { ENVD_VERSION } from "../shared/version.ts";
import { buildConsolePage } from "./lib/programs/console-page.ts";
import { compileReseed } from "./lib/programs/node-module.ts";

const root = join(import.meta.dirname, "..");
const { values, positionals: asked } = parseArgs({
  options: { to: { type: "string" }, main: { type: "string" } },
  allowPositionals: true,
});
const dist = resolve(values.to ?? join(root, "dist"));

// The native addon, with its file for this processor; all other packages are bundled.
const addon = "better-sqlite3";
const addonFiles = new RegExp(`^(package\\.json|lib/.*\\.js|prebuilds/linux-${process.arch}\\.node)$`);
// Optional accelerators of ssh2, which dockerode brings for Docker daemons reached over ssh: it does without them.
// The native client of pg, which is used only where it is asked for.
const absent = ["cpu-features", "./crypto/build/Release/sshcrypto.node", "pg-native"];

/** The commit of the checkout; a copy without its history has none. */
function commit(): string {
  try {
    return execFileSync("git", ["rev-parse", "HEAD"], {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}

const common: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node24",
  logLevel: "warning",
};

// It runs on the Node of its template: where the npm registry was out of reach, that is the machine's own.
const interpreterTarget = "node20";

/** Packages in CommonJS find `require` as they expect. */
const requireOfModule =
  'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);';

/** Makes an ES module, in which packages in CommonJS find `require` and their own path as they expect. */
async function bundleProgram(name: string, main = `${name}/main.ts`): Promise<void> {
  await build({
    ...common,
    entryPoints: [join(root, main)],
    outfile: join(dist, `${name}.js`),
    format: "esm",
    sourcemap: "linked",
    sourcesContent: false,
    external: [addon, ...absent],
    define: { SVC_COMMIT: JSON.stringify(commit()) },
    banner: {
      js: [
        requireOfModule,
        'import { fileURLToPath as __fileURLToPath } from "node:url";',
        'import { dirname as __dirnameOf } from "node:path";',
        "const __filename = __fileURLToPath(import.meta.url);",
        "const __dirname = __dirnameOf(__filename);",
      ].join("\n"),
    },
  });
  writeFileSync(join(dist, "package.json"), `${JSON.stringify({ type: "module" })}\n`);
  copyAddon();
}

function copyAddon(): void {
  const from = join(root, "node_modules", addon);
  for (const file of readdirSync(from, { recursive: true, encoding: "utf8" })) {
    if (addonFiles.test(file)) cpSync(join(from, file), join(dist, "node_modules", addon, file));
  }
}

/**
 * envd, and beside it the acts of a build's steps. CommonJS without a source map, because every start of a sandbox loads it
 * over a read-only mount.
 */
async function bundleEnvd(): Promise<void> {
  const directory = join(dist, "envd");
  mkdirSync(directory, { recursive: true });
  await build({
    ...common,
    entryPoints: [
      { in: join(root, "envd/main.ts"), out: "envd" },
      { in: join(root, "envd/steps/main.ts"), out: "steps" },
    ],
    outdir: directory,
    format: "cjs",
    minify: true,
  });
  const sources = readdirSync(join(root, "envd/exec")).filter((name) => name.endsWith(".c"));
  const helper = join(directory, "svc-exec");
  execFileSync("cc", ["-static", "-Os", "-s", "-Wall", "-o", helper, ...sources.toSorted()], {
    cwd: join(root, "envd/exec"),
    stdio: "inherit",
  });
  const { launchArgs } = await import("../envd/runtime/launch.ts");
  writeFileSync(join(directory, "launch.json"), `${JSON.stringify({ args: launchArgs, version: ENVD_VERSION })}\n`);
  writeFileSync(join(directory, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
}

/**
 * Builds the agent with its programs for what Node cannot do: quick starts of commands, notices of firewall changes, copies of frozen
 * disks, the files of volumes, holes of files, paths of watched files, and the files that say what a sandbox has.
 */
async function bundleAgent(): Promise<void> {
  await bundleProgram("agent");
  compile("agent/host/commands", "svc-commands");
  compile("agent/network", "svc-table-watch");
  compile("agent/network", "svc-network-probe");
  compile("agent/sandbox-disks", "svc-disk-copy");
  compile("agent/volumes", "svc-volume-files");
  compile("agent/blobs/trees", "svc-extents");
  compile("agent/snapshots/criu", "svc-watch-paths", "watch-paths", "socket-names");
  compile("agent/procfs/program", "svc-sizes", "serve", "files", "container", "rebind");
}

/** Builds the egress process, and `svc-egress`, which makes its sockets and takes its rights away before Node starts. */
async function bundleEgress(): Promise<void> {
  await bundleProgram("egress", "agent/egress/main.ts");
  compile("agent/egress/launch", "svc-egress", "filter");
}

function compile(folder: string, name: string, ...parts: readonly string[]): void {
  const sources = [name, ...parts].map((part) => `${part}.c`);
  execFileSync("cc", ["-static", "-Os", "-s", "-Wall", "-o", join(dist, name), ...sources], {
    cwd: join(root, folder),
    stdio: "inherit",
  });
}

/**
 * The code interpreter for templates: the server, the workers, the Python side, the worker's native file, and of zeromq
 * the one for this platform. The folder needs only Node beside it.
 */
async function bundleInterpreter(): Promise<void> {
  const directory = join(dist, "interpreter");
  mkdirSync(directory, { recursive: true });
  const bundles = { main: "interpreter/main.ts", javascript: "interpreter/kernels/workers/javascript/main.ts" };
  await build({
    ...common,
    target: interpreterTarget,
    entryPoints: Object.entries(bundles).map(([out, path]) => ({ in: join(root, path), out })),
    outdir: directory,
    format: "cjs",
    minify: true,
    plugins: [zeromqBeside],
    external: ["./zeromq.node"],
  });
  cpSync(zeromqAddon(), join(directory, "zeromq.node"));
  compileReseed(directory);
  cpSync(join(root, "interpreter/kernels/workers/java/Worker.java"), join(directory, "Worker.java"));
  const python = join(root, "interpreter/python");
  const isShipped = (path: string) => !/(^|\/)(tests|__pycache__)$/.test(path);
  if (existsSync(python)) cpSync(python, join(directory, "python"), { recursive: true, filter: isShipped });
  writeFileSync(join(directory, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
}

/** zeromq looks for its native file among those of all platforms; the bundle has one beside it. */
const zeromqBeside: Plugin = {
  name: "zeromq-beside",
  setup: (plugins) => {
    plugins.onLoad({ filter: /\/zeromq\/lib\/load-addon\.js$/ }, () => ({
      contents: 'exports.__esModule = true; exports.default = require("./zeromq.node");',
    }));
  },
};

/**
 * The one of the package's native files for this platform that is built against an old glibc, as Debian 12 needs it (others
 * want 2.38). Node's stable interface takes it in every version of Node.
 */
function zeromqAddon(): string {
  return join(root, "node_modules/zeromq/build/linux", process.arch, "node/glibc-127-Release/addon.node");
}

/** The command `svc`: a small main file, and parts of it that a command loads when it is called. */
async function bundleCli(): Promise<void> {
  const directory = join(dist, "cli");
  rmSync(directory, { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: [join(root, "cli/main.ts")],
    outdir: directory,
    format: "esm",
    splitting: true,
    minify: true,
    banner: { js: requireOfModule },
  });
  writeFileSync(join(directory, "package.json"), `${JSON.stringify({ type: "module" })}\n`);
}

const builders: Record<string, () => Promise<void>> = {
  orchestrator: () => bundleProgram("orchestrator"),
  console: async () => void (await buildConsolePage(root, join(dist, "console"))),
  edge: () => bundleProgram("edge", "orchestrator/edge/main.ts"),
  agent: bundleAgent,
  egress: bundleEgress,
  // The agent starts it for the report of its machine.
  doctor: () => bundleProgram("doctor", "machine/main.ts"),
  envd: bundleEnvd,
  interpreter: bundleInterpreter,
  cli: bundleCli,
};

const unknown = asked.filter((name) => builders[name] === undefined);
if (unknown.length > 0)
  throw new Error(`no such program: ${unknown.join(", ")}; there are ${Object.keys(builders).join(", ")}`);
const all = asked.length === 0 && values.main === undefined;
// The addon would load what an earlier version of it has left there.
if (all) rmSync(join(dist, "node_modules"), { recursive: true, force: true });
for (const [name, builder] of Object.entries(builders)) {
  if (all || asked.includes(name)) await builder();
}
if (values.main !== undefined) await bundleProgram(values.main.replace(/\.ts$/, "").replaceAll("/", "-"), values.main);
