/** Uploaded images become archives that Docker loads, and only when each part is what its description says. */

import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { expect, test } from "vitest";
import { engineArchive, IMAGE_LIMITS } from "../../../../agent/builds/images/oci-archive.ts";
import { archiveOf, type Layout, layoutOf } from "../../../support/images/saved-image.ts";
import { tarOf } from "../../../support/images/tar.ts";
import { untarred } from "../../../support/images/untarred.ts";

const layer = tarOf({ "etc/note": "hello" });
const configOf = (architecture = "amd64", layers = [layer]) => {
  const diff_ids = layers.map((one) => `sha256:${sha256(one)}`);
  return Buffer.from(JSON.stringify({ os: "linux", architecture, rootfs: { type: "layers", diff_ids } }));
};
const layout = (layers = [layer], config = configOf("amd64", layers)) => layoutOf({ config, layers });
const options = { name: "svc/from:n-b", ref: undefined, architecture: "amd64" };

/** Resolves to the files that Docker would get from the archive, which is read in pieces of `pieces` bytes. */
async function converted(archive: Buffer, more: { ref?: string } = {}, pieces = archive.length) {
  const chunks = Array.from({ length: Math.ceil(archive.length / pieces) }, (_, at) =>
    archive.subarray(at * pieces, (at + 1) * pieces),
  );
  return untarred(await buffer(engineArchive(Readable.from(chunks), { ...options, ...more })));
}

const refused = async (archive: Buffer, more: { ref?: string } = {}) =>
  ((await converted(archive, more).catch((error: unknown) => error)) as Error).message;

function sha256(content: Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Replaces the layout's index. */
function indexed(of: Layout, manifests: readonly object[]): Layout {
  return { ...of, files: new Map([...of.files, ["index.json", Buffer.from(JSON.stringify({ manifests }))]]) };
}

test.each<[string, (plain: Buffer) => Buffer, number]>([
  ["plain", (plain) => plain, 65_536],
  ["in gzip", (plain) => gzipSync(plain), 65_536],
  ["in small pieces", (plain) => plain, 3],
])("an archive %s becomes what `docker load` takes", async (_name, packed, pieces) => {
  const files = await converted(packed(await archiveOf(layout())), {}, pieces);
  const [about] = JSON.parse(files.get("manifest.json")?.toString() ?? "") as Record<string, unknown>[];
  expect(about).toEqual({
    Config: `blobs/sha256/${sha256(configOf())}`,
    RepoTags: ["svc/from:n-b"],
    Layers: [`blobs/sha256/${sha256(gzipSync(layer))}`],
  });
  expect(files.get(`blobs/sha256/${sha256(gzipSync(layer))}`)).toEqual(gzipSync(layer));
  expect([...files.keys()].at(-1)).toBe("manifest.json");
});

test("of several images the one for this processor is taken, or the one that is named", async () => {
  const [here, there] = [layout(), layout([layer], configOf("arm64"))];
  const files = new Map([...there.files, ...here.files]);
  const both = [
    { ...there.manifest, platform: { os: "linux", architecture: "arm64" }, annotations: named("arm") },
    { ...here.manifest, platform: { os: "linux", architecture: "amd64" }, annotations: named("one") },
  ];
  const inner = Buffer.from(JSON.stringify({ manifests: both }));
  const nested = {
    mediaType: "application/vnd.oci.image.index.v1+json",
    digest: `sha256:${sha256(inner)}`,
    size: inner.length,
  };
  files.set(`blobs/sha256/${sha256(inner)}`, inner);
  const config = async (of: Layout, ref?: string) => {
    const made = await converted(await archiveOf(of), ref === undefined ? {} : { ref });
    return (JSON.parse(made.get("manifest.json")?.toString() ?? "") as { Config: string }[])[0]?.Config;
  };
  const expected = `blobs/sha256/${sha256(configOf())}`;
  const all: Layout = { files, manifest: here.manifest };
  expect(await config(indexed(all, both))).toBe(expected);
  expect(await config(indexed(all, [nested]))).toBe(expected);
  const other = layout([tarOf({ other: "" })]);
  const two = { ...all, files: new Map([...files, ...other.files]) };
  const manifests = [...both, { ...other.manifest, annotations: named("two") }];
  expect(await refused(await archiveOf(indexed(two, manifests)))).toMatch(/several images \(arm, one, two\)/);
  expect(await config(indexed(two, manifests), "one")).toBe(expected);
  expect(await refused(await archiveOf(indexed(two, manifests)), { ref: "arm" })).toMatch(
    /called 'arm' for linux\/amd64/,
  );
  expect(await refused(await archiveOf(indexed(two, manifests)), { ref: "three" })).toMatch(/no image called 'three'/);
});

function named(name: string) {
  return { "org.opencontainers.image.ref.name": name };
}

/** A layer whose only entry is a sparse one. */
function sparse(): Buffer {
  const tar = tarOf({ big: "x" });
  tar.write("S", 156);
  // The entry's type was "0" and is now "S", so the checksum grows by the difference.
  const sum = Number.parseInt(tar.toString("latin1", 148, 154), 8) + 0x53 - 0x30;
  tar.write(sum.toString(8).padStart(6, "0"), 148);
  return tar;
}

/** A layout whose only layer is not compressed. */
function plainLayout(one: Buffer): Layout {
  const config = configOf("amd64", [one]);
  const manifest = Buffer.from(JSON.stringify({ config: described(config), layers: [described(one)] }));
  const files = new Map([config, one, manifest].map((content) => [`blobs/sha256/${sha256(content)}`, content]));
  files.set("index.json", Buffer.from(JSON.stringify({ manifests: [described(manifest)] })));
  return { files, manifest: { ...described(manifest), mediaType: "" } };
}

function changed(change: (files: Map<string, Buffer>) => void, of = layout()): Promise<Buffer> {
  change(of.files);
  return archiveOf(of);
}

const layerFile = `blobs/sha256/${sha256(gzipSync(layer))}`;

test.each<[string, () => Promise<Buffer> | Buffer, RegExp]>([
  ["a layer with another content", () => changed((files) => files.set(layerFile, gzipSync("x"))), /another sha256/],
  [
    "a layer that goes by the name of another",
    () => archiveOf(layout([tarOf({ a: "b" })], configOf())),
    /other layers/,
  ],
  ["a missing layer", () => changed((files) => files.delete(layerFile)), /lacks a part/],
  ["no index", () => changed((files) => files.delete("index.json")), /not an OCI layout/],
  ["an index that is no JSON", () => changed((files) => files.set("index.json", layer)), /not JSON/],
  ["an index of something else", () => changed((files) => files.set("index.json", Buffer.from("[]"))), /index/],
  ["a way out", () => changed((files) => files.set("../../etc/passwd", layer)), /leads out/],
  ["a link instead of a layer", () => withEntry({ name: layerFile, type: "symlink", linkname: "/etc/shadow" }), /link/],
  [
    "a layer with a sparse file",
    () => archiveOf(layout([sparse()])),
    /a layer that is refused: 'big' is a sparse file/,
  ],
  ["one as it is", () => archiveOf(plainLayout(sparse())), /a layer that is refused: 'big' is a sparse file/],
  ["a device", () => withEntry({ name: "blobs/x", type: "character-device" }), /device/],
  ["an image for others", () => archiveOf(layout([layer], configOf("s390x"))), /linux\/s390x only/],
  ["no archive at all", () => Buffer.from("nothing"), /damaged or is not a tar/],
])("%s is refused", async (_name, archive, reason) => {
  expect(await refused(await archive())).toMatch(reason);
});

test.each([
  ["zstd", "28b52ffd00000000", /neither plain nor compressed with gzip/],
  ["xz", "fd377a585a000000", /neither plain nor compressed with gzip/],
  ["broken gzip", "1f8b080000000000", /damaged/],
])("a layer in %s is refused, also when it comes byte by byte", async (_name, hex, reason) => {
  const bytes = Buffer.from(hex, "hex");
  const manifest = {
    config: described(configOf()),
    layers: [described(bytes)],
  };
  const json = Buffer.from(JSON.stringify(manifest));
  const files = new Map([configOf(), bytes, json].map((content) => [`blobs/sha256/${sha256(content)}`, content]));
  files.set("index.json", Buffer.from(JSON.stringify({ manifests: [described(json)] })));
  const archive = await archiveOf({ files });
  await expect(converted(archive, {}, 1)).rejects.toThrow(reason);
});

test.each([1, 100_000])("a layer with bytes behind its gzip is passed on, in pieces of %i bytes", async (pieces) => {
  const bytes = Buffer.concat([gzipSync(layer), Buffer.alloc(1_024)]);
  const config = configOf();
  const json = Buffer.from(JSON.stringify({ config: described(config), layers: [described(bytes)] }));
  const files = new Map([config, bytes, json].map((content) => [`blobs/sha256/${sha256(content)}`, content]));
  files.set("index.json", Buffer.from(JSON.stringify({ manifests: [described(json)] })));
  const made = await converted(await archiveOf({ files }), {}, pieces);
  expect(made.get(`blobs/sha256/${sha256(bytes)}`)).toEqual(bytes);
  expect([...made.keys()].at(-1)).toBe("manifest.json");
});

function described(content: Buffer) {
  return { digest: `sha256:${sha256(content)}`, size: content.length };
}

test.each([
  ["more than it may", { bytes: 1_000_000 }, "the image unpacks to more than 1000000 bytes"],
  ["many times its size", { ratioFrom: 1_000_000 }, "the archive unpacks to more than 200 times its size"],
])("an image that unpacks to %s is refused", async (_name, limit, reason) => {
  const archive = await archiveOf(layout([Buffer.alloc(4_000_000)]));
  const limits = { ...IMAGE_LIMITS, ...limit };
  await expect(buffer(engineArchive(Readable.from([archive]), { ...options, limits }))).rejects.toThrow(reason);
});

test("the source ends when its reader leaves", async () => {
  const source = Readable.from([
    await archiveOf(layout([Buffer.from(Array.from({ length: 1e6 }, (_, at) => at % 251))])),
  ]);
  engineArchive(source, options).destroy();
  await expect.poll(() => source.destroyed).toBe(true);
});

async function withEntry(header: Partial<Header> & { name: string }): Promise<Buffer> {
  const made = pack();
  made.entry(header, "");
  made.finalize();
  return buffer(made);
}
