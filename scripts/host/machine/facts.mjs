// The facts of this machine that machine/known/checks.mjs judges. Every question has a time limit; what cannot be asked is no evidence.
import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { release, totalmem } from "node:os";
import { dirname } from "node:path";

const LIMIT_MS = 5_000;
/** Large databases take a while to read; this runs only after a failed start. */
const DATABASE_LIMIT_MS = 30_000;

/** @param about the checkout, the programs that this machine runs, subnet and network name of the instance, and its databases */
export async function facts(when, about) {
  if (when === "machine") return machineFacts(about);
  if (when === "docker") return { ...about, ...(await dockerFacts()), routes: routes(about.networkName) };
  const found = (what) => about.databases.map(what).filter((one) => one !== undefined);
  return { damaged: found(damage), full: found(fullDisk) };
}

function machineFacts({ checkout, programs }) {
  const mounts = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split(" "))
    .map(([, place, , options]) => ({ place, options: options.split(",") }));
  const { bavail, bsize } = statfsSync("/var/lib");
  const places = ["/etc/svc", "/opt/svc", "/var/lib/svc", "/run/svc", "/var/log/svc"].map(existing);
  return {
    checkout,
    programs,
    release: release(),
    mounts,
    freeBytes: bavail * bsize,
    memoryBytes: totalmem(),
    readOnly: places.filter((place) => !writable(place)),
    noexec: [existing("/opt/svc")].filter((place) => mountOf(place, mounts)?.options.includes("noexec")),
  };
}

function existing(path) {
  return existsSync(path) ? path : existing(dirname(path));
}

function writable(path) {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The last mount of the longest place is in force. */
function mountOf(path, mounts) {
  return mounts
    .filter(({ place }) => place === "/" || path === place || path.startsWith(`${place}/`))
    .reduce((best, mount) => (best === undefined || mount.place.length >= best.place.length ? mount : best), undefined);
}

async function dockerFacts() {
  const [docker, dockerVersion] = await Promise.all([ask("/info"), ask("/version")]);
  return { docker, dockerVersion };
}

function ask(path) {
  return new Promise((resolve) => {
    const asked = request({ socketPath: "/var/run/docker.sock", path, timeout: LIMIT_MS }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part));
      response.on("end", () => resolve(parsed(text)));
    });
    asked.on("timeout", () => asked.destroy(new Error("no answer")));
    asked.on("error", () => resolve({}));
    asked.end();
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

/** Whether the agent of the network `networkName` made the link: its gateway, a sandbox's or that of its own probe. */
export function isOwnLink(networkName, link) {
  return new RegExp(`^${networkName}(-[0-9]+|-probe|0)$`).test(link);
}

/** Networks that this machine reaches over links of others; the default route is no network. */
function routes(networkName) {
  let listed;
  try {
    listed = JSON.parse(
      execFileSync("ip", ["-j", "-4", "route", "show", "table", "all"], { timeout: LIMIT_MS, encoding: "utf8" }),
    );
  } catch {
    return [];
  }
  return listed
    .filter(
      ({ type = "unicast", dst, dev }) =>
        type === "unicast" && dst !== "default" && dev !== undefined && !isOwnLink(networkName, dev),
    )
    .map(({ dst, dev }) => ({ range: dst, words: `${dst} of the link ${dev}` }));
}

/** The program cannot open a database with less. */
const NEEDED_BYTES = 256 * 1024;

/** How little room a database file has; undefined: enough, or there is none. */
function fullDisk(file) {
  if (!existsSync(file)) return undefined;
  const { bavail, bsize } = statfsSync(dirname(file));
  const free = bavail * bsize;
  return free < NEEDED_BYTES ? `${file}: ${free} bytes are free there` : undefined;
}

/** What is wrong with a database file; undefined: nothing, or there is none. */
function damage(file) {
  if (!existsSync(file) || statSync(file).size === 0) return undefined;
  const Database = createRequire(import.meta.url)("better-sqlite3");
  try {
    const database = new Database(file, { readonly: true, timeout: DATABASE_LIMIT_MS });
    try {
      const result = database.pragma("quick_check(1)", { simple: true });
      return result === "ok" ? undefined : `${file}: ${result}`;
    } finally {
      database.close();
    }
  } catch (error) {
    return /SQLITE_(CORRUPT|NOTADB)/.test(error.code ?? "") ? `${file}: ${error.message}` : undefined;
  }
}
