// Prints the parts of the archive for machines without a network, as a bill of materials in the form of CycloneDX: packages of npm that
// the programs were built of, and packages of Debian. Usage: node parts-list.mjs LOCK-FILE PACKAGES-INDEX
import { readFileSync } from "node:fs";

const [lockFile, index] = process.argv.slice(2);
const { packages } = JSON.parse(readFileSync(lockFile, "utf8"));

/** The name of what a place in `node_modules` holds; another one than the directory's where that is an alias. */
const nameOf = (place, { name }) => name ?? place.slice(place.lastIndexOf("node_modules/") + "node_modules/".length);

const ofNpm = Object.entries(packages)
  .filter(([place, { dev }]) => place !== "" && dev !== true)
  .map(([place, entry]) => {
    const name = nameOf(place, entry);
    const [algorithm, digest = ""] = entry.integrity?.split("-") ?? [];
    return {
      type: "library",
      name,
      version: entry.version,
      purl: `pkg:npm/${name.replace("@", "%40")}@${entry.version}`,
      ...(algorithm === "sha512"
        ? { hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] }
        : {}),
    };
  });

const ofDebian = readFileSync(index, "utf8")
  .split("\n\n")
  .filter((text) => text.trim() !== "")
  .map((text) => {
    const field = (name) => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1] ?? "";
    const [name, version, architecture] = ["Package", "Version", "Architecture"].map(field);
    return {
      type: "library",
      name,
      version,
      purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
      hashes: [{ alg: "SHA-256", content: field("SHA256") }],
    };
  });

const components = [...new Map([...ofNpm, ...ofDebian].map((component) => [component.purl, component])).values()];
process.stdout.write(
  `${JSON.stringify({ bomFormat: "CycloneDX", specVersion: "1.5", version: 1, components }, null, 1)}\n`,
);
