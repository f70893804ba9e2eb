/** Selects the image of an OCI layout and its parts. The layout comes from a client and is not trusted. Pure. */

import { type Static, Type } from "typebox";
import { AppError } from "../../../shared/http/errors.ts";
import { type Check, check } from "../../../shared/http/validate.ts";

/** A file of the layout that is named after the digest of its content. */
export interface Blob {
  readonly size: number;
  /** Format of its first bytes. `other`: a compression that not every Docker daemon unpacks. */
  readonly packing: "none" | "gzip" | "other";
  /** Hexadecimal sha256 of the unpacked content. */
  readonly unpacked: string;
  /** Why Docker must not unpack the blob as a layer; undefined when Docker may. */
  readonly problem: string | undefined;
  /** Content of small blobs, which may be JSON. */
  readonly content: Buffer | undefined;
}

/** Blobs by the hexadecimal part of their digest. */
export type Blobs = ReadonlyMap<string, Blob>;

/** Hexadecimal digests: the configuration, and the layers from the lowest one on. */
export interface LayoutImage {
  readonly config: string;
  readonly layers: readonly string[];
}

export interface Wanted {
  /** Name of the image in an archive that holds several. */
  readonly ref: string | undefined;
  /** Processor as images name it, for example `amd64`. */
  readonly architecture: string;
}

const Descriptor = Type.Object({
  mediaType: Type.Optional(Type.String({ maxLength: 255 })),
  digest: Type.String({ maxLength: 255 }),
  size: Type.Integer({ minimum: 0 }),
  platform: Type.Optional(Type.Object({ os: Type.String(), architecture: Type.String() })),
  annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
});
type Descriptor = Static<typeof Descriptor>;

const readIndex = check(Type.Object({ manifests: Type.Array(Descriptor, { maxItems: 256 }) }), "the archive's index");
const readManifest = check(
  Type.Object({ config: Descriptor, layers: Type.Array(Descriptor, { minItems: 1, maxItems: 127 }) }),
  "the image's manifest",
);
const readConfig = check(
  Type.Object({
    os: Type.String(),
    architecture: Type.String(),
    rootfs: Type.Object({ diff_ids: Type.Array(Type.String(), { maxItems: 127 }) }),
  }),
  "the image's configuration",
);

const INDEXES = new Set([
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
]);
const NAMES = ["org.opencontainers.image.ref.name", "io.containerd.image.name"];
/** Limit of indexes nested in each other. */
const DEEPEST = 3;
const MOST_MANIFESTS = 256;

/** `index`: content of `index.json`. @throws {AppError} bad_request */
export function chooseImage(index: Buffer, blobs: Blobs, { ref, architecture }: Wanted): LayoutImage {
  const named = parsed(readIndex, index, "index").manifests.filter((one) => ref === undefined || isNamed(one, ref));
  const names = () => (ref === undefined ? "" : ` called '${ref}'`);
  if (named.length === 0) throw refused(`holds no image${names()}`);
  const fitting = manifestsIn(named, blobs).filter(({ platform }) => fits(platform, architecture));
  const [found, another] = [...new Map(fitting.map((one) => [one.digest, one])).values()];
  if (found === undefined) throw refused(`holds no image${names()} for linux/${architecture}`);
  if (another !== undefined) {
    const known = named.flatMap(({ annotations = {} }) => NAMES.flatMap((name) => annotations[name] ?? []));
    throw refused(
      `holds several images (${[...new Set(known)].slice(0, 10).join(", ")}): say which one after its hash`,
    );
  }
  const { config, layers } = parsed(readManifest, content(found, blobs), "manifest");
  const about = parsed(readConfig, content(config, blobs), "configuration");
  if (!fits(about, architecture)) throw refused(`has an image for ${about.os}/${about.architecture} only`);
  checkLayers(layers, about.rootfs.diff_ids, blobs);
  return { config: digits(config), layers: layers.map(digits) };
}

function manifestsIn(top: readonly Descriptor[], blobs: Blobs): Descriptor[] {
  const found: Descriptor[] = [];
  const visit = (one: Descriptor, depth: number) => {
    if (!INDEXES.has(one.mediaType ?? "")) found.push(one);
    else if (depth >= DEEPEST) throw refused("has an index in an index in an index");
    else for (const inner of parsed(readIndex, content(one, blobs), "index").manifests) visit(inner, depth + 1);
    if (found.length > MOST_MANIFESTS) throw refused("holds too many images");
  };
  for (const one of top) visit(one, 1);
  return found;
}

// An entry without a platform is checked when it is chosen.
function fits(platform: Descriptor["platform"], architecture: string): boolean {
  return platform === undefined || (platform.os === "linux" && platform.architecture === architecture);
}

function isNamed({ annotations = {} }: Descriptor, ref: string): boolean {
  return NAMES.some((name) => annotations[name] === ref);
}

// Docker reuses a layer that it has by its name alone, so a client must not name a layer whose content it did not send.
function checkLayers(layers: readonly Descriptor[], names: readonly string[], blobs: Blobs): void {
  const found = layers.map((layer) => blobOf(layer, blobs));
  if (found.some(({ packing }) => packing === "other"))
    throw refused("has a layer that is neither plain nor compressed with gzip");
  const problem = found.find((layer) => layer.problem !== undefined)?.problem;
  if (problem !== undefined) throw refused(`has a layer that is refused: ${problem}`);
  if (names.length !== found.length || found.some(({ unpacked }, at) => names[at] !== `sha256:${unpacked}`))
    throw refused("has other layers than the image's configuration names");
}

function content(descriptor: Descriptor, blobs: Blobs): Buffer {
  const { content: found } = blobOf(descriptor, blobs);
  if (found === undefined) throw refused(`has a description (${descriptor.digest}) that is too large or not JSON`);
  return found;
}

function blobOf(descriptor: Descriptor, blobs: Blobs): Blob {
  const found = blobs.get(digits(descriptor));
  if (found === undefined) throw refused(`lacks a part of the image (${descriptor.digest})`);
  if (found.size !== descriptor.size)
    throw refused(`has a part of ${found.size} bytes, declared as ${descriptor.size} bytes (${descriptor.digest})`);
  return found;
}

function digits({ digest }: Descriptor): string {
  const found = /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1];
  if (found === undefined) throw refused("names a part by something other than its sha256");
  return found;
}

function parsed<S extends Parameters<typeof check>[0]>(read: Check<S>, bytes: Buffer, what: string): Static<S> {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new AppError("bad_request", `the archive of the image has an ${what} that is not JSON`, { cause });
  }
  return read.parse(value);
}

function refused(why: string): AppError {
  return new AppError("bad_request", `the archive of the image ${why}`);
}
