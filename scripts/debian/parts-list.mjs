// Prints the parts of the archive for machines without a network, as a bill of materials in the form of CycloneDX 1.5: packages of npm that
// the programs were built of or that the package brings, packages of Debian, CRIU, and the base template with its own packages.
// Usage: node parts-list.mjs LOCK-FILE CONTENT LISTS. CONTENT is the archive's directory. LISTS has the files `base-status` (dpkg's list
// of the base template), `base-npm` (its packages of npm: directory, package, version, integrity), and `places` (directories of
// node_modules in the package).
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [lockFile, content, lists] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync(lockFile, "utf8"));
const places = new Set(linesOf(join(lists, "places")));
const { SOURCE_DATE_EPOCH: commitTime } = process.env;

function linesOf(path) {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

const sha256 = (path) => ({
  alg: "SHA-256",
  content: createHash("sha256").update(readFileSync(path)).digest("hex"),
});

/** The name of what a place in `node_modules` holds; another one than the directory's where that is an alias. */
const nameOf = (place, { name }) => name ?? place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);

function partOfNpm(name, { version, integrity, license }) {
  const [algorithm, digest = ""] = integrity?.split("-") ?? [];
  return {
    type: "library",
    name,
    version,
    purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
    ...(license === undefined ? {} : { licenses: [{ license: { name: license } }] }),
    ...(algorithm === "sha512"
      ? { hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] }
      : {}),
  };
}

/** Whether a package is in the programs or beside them. Tools of tests are not; an optional one may be for another processor. */
const isOfPrograms = (place, { dev, optional }) =>
  dev !== true && (optional !== true || existsSync(join(dirname(lockFile), place)));

const ofNpm = Object.entries(packages)
  .filter(([place, entry]) => place !== "" && (places.has(place) || isOfPrograms(place, entry)))
  .map(([place, entry]) => partOfNpm(nameOf(place, entry), entry));

/** Stanzas of dpkg's status or of an index of apt. */
function stanzasOf(path) {
  return readFileSync(path, "utf8")
    .split("\n\n")
    .filter((text) => text.trim() !== "")
    .map((text) => (name) => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1] ?? "");
}

function partOfDebian(field) {
  const [name, version, architecture, hash] = ["Package", "Version", "Architecture", "SHA256"].map(field);
  return {
    type: "library",
    name,
    version,
    purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
    ...(hash === "" ? {} : { hashes: [{ alg: "SHA-256", content: hash }] }),
  };
}

const index = stanzasOf(join(content, "packages/Packages"));
const ofDebian = index.filter((field) => field("Package") !== "svc").map(partOfDebian);

/** The archive's own package, which all of it is about. */
function svc() {
  const field = index.find((one) => one("Package") === "svc");
  const { name, version, hashes } = partOfDebian(field);
  return { type: "application", name, version, purl: `pkg:generic/svc@${encodeURIComponent(version)}`, hashes };
}

/** A CRIU of a newer Debian, with its own libraries beside it, whose directory is its version. */
function criuOf(version) {
  const directory = join(content, "criu", version);
  const libraries = readdirSync(join(directory, "lib")).toSorted();
  return {
    type: "application",
    name: "criu",
    version,
    purl: `pkg:deb/debian/criu@${encodeURIComponent(version)}`,
    hashes: [sha256(join(directory, "criu.real"))],
    components: libraries.map((name) => ({ type: "file", name, hashes: [sha256(join(directory, "lib", name))] })),
  };
}

function templateOf(file) {
  const ofItsNpm = linesOf(join(lists, "base-npm")).map((line) => {
    const [, name, version, integrity] = line.split(" ");
    return partOfNpm(name, { version, integrity });
  });
  return {
    type: "container",
    name: "svc/base",
    version: /^base-(.*)\.tar\.gz$/.exec(file)[1],
    hashes: [sha256(join(content, file))],
    components: [...stanzasOf(join(lists, "base-status")).map(partOfDebian), ...ofItsNpm],
  };
}

const components = [
  ...new Map([...ofNpm, ...ofDebian].map((component) => [component.purl, component])).values(),
  ...readdirSync(join(content, "criu")).toSorted().map(criuOf),
  ...readdirSync(content)
    .filter((name) => /^base-.*\.tar\.gz$/.test(name))
    .map(templateOf),
];
const timestamp = (commitTime === undefined ? new Date() : new Date(Number(commitTime) * 1_000)).toISOString();
const metadata = { timestamp, component: svc() };
process.stdout.write(
  `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, metadata, components }, null, 1)}\n`,
);
