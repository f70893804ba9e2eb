/** The parts of an image of this machine's Docker daemon, and an OCI layout of it as image tools write one. */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { untarred } from "./untarred.ts";

export interface SavedImage {
  readonly config: Buffer;
  /** The layers' tars, from the lowest one on. */
  readonly layers: readonly Buffer[];
}

export async function savedImage(name: string): Promise<SavedImage> {
  const files = await saved(name);
  const [about] = JSON.parse(files.get("manifest.json")?.toString("utf8") ?? "[]") as {
    Config: string;
    Layers: string[];
  }[];
  if (about === undefined) throw new Error("nothing saved");
  const content = (path: string) => files.get(path) ?? Buffer.alloc(0);
  return { config: content(about.Config), layers: about.Layers.map(content) };
}

export interface Layout {
  /** The files by name, in this order. */
  readonly files: Map<string, Buffer>;
  /** The descriptor of the image's manifest. */
  readonly manifest: { readonly digest: string; readonly size: number; readonly mediaType: string };
}

/** Makes a layout with the image's layers in gzip. */
export function layoutOf({ config, layers }: SavedImage): Layout {
  const files = new Map<string, Buffer>([["oci-layout", Buffer.from('{"imageLayoutVersion":"1.0.0"}')]]);
  const blob = (content: Buffer, mediaType: string) => {
    const hex = createHash("sha256").update(content).digest("hex");
    files.set(`blobs/sha256/${hex}`, content);
    return { mediaType, size: content.length, digest: `sha256:${hex}` };
  };
  const json = (value: object) => Buffer.from(JSON.stringify(value));
  const manifest = blob(
    json({
      schemaVersion: 2,
      config: blob(config, "application/vnd.oci.image.config.v1+json"),
      layers: layers.map((layer) => blob(gzipSync(layer), "application/vnd.oci.image.layer.v1.tar+gzip")),
    }),
    "application/vnd.oci.image.manifest.v1+json",
  );
  files.set("index.json", json({ schemaVersion: 2, manifests: [manifest] }));
  return { files, manifest };
}

export async function archiveOf({ files }: Pick<Layout, "files">): Promise<Buffer> {
  const made = pack();
  made.entry({ name: "./blobs/sha256", type: "directory" });
  for (const [name, content] of files) made.entry({ name: `./${name}` }, content);
  made.finalize();
  return buffer(made);
}

async function saved(image: string): Promise<Map<string, Buffer>> {
  const save = spawn("docker", ["save", image], { stdio: ["ignore", "pipe", "inherit"] });
  return untarred(save.stdout);
}
