/** A registry of images with one image in it, behind basic auth: as much of the protocol as the engine's pull needs. */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { extract } from "tar-stream";

export interface Registry {
  /** host:port/name:tag */
  readonly image: string;
  readonly username: string;
  readonly password: string;
  close(): void;
}

/** `source`: an image of this machine's engine. */
export async function registryWith(source: string): Promise<Registry> {
  const files = await saved(source);
  const [about] = JSON.parse(text(files, "manifest.json")) as { Config: string; Layers: string[] }[];
  if (about === undefined) throw new Error("nothing saved");
  const blobs = new Map<string, Buffer>();
  const blob = (content: Buffer, mediaType: string) => {
    const digest = digestOf(content);
    blobs.set(digest, content);
    return { mediaType, size: content.length, digest };
  };
  const content = (name: string) => files.get(name) ?? Buffer.alloc(0);
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: blob(content(about.Config), "application/vnd.docker.container.image.v1+json"),
      layers: about.Layers.map((name) =>
        blob(gzipSync(content(name)), "application/vnd.docker.image.rootfs.diff.tar.gzip"),
      ),
    }),
  );
  const [username, password] = ["someone", "pass:word"];
  const expected = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  const server = createServer((request, response) => {
    if (request.headers.authorization !== expected) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end();
      return;
    }
    const [, kind, name = ""] = /^\/v2\/test\/image\/(manifests|blobs)\/(.+)$/.exec(request.url ?? "") ?? [];
    const found = kind === "blobs" ? blobs.get(name) : kind === "manifests" ? manifest : undefined;
    if (request.url === "/v2/") response.writeHead(200).end();
    else if (found === undefined) response.writeHead(404).end();
    else {
      const type = kind === "manifests" ? MANIFEST : "application/octet-stream";
      const head = { "content-type": type, "content-length": found.length, "docker-content-digest": digestOf(found) };
      response.writeHead(200, head).end(request.method === "HEAD" ? undefined : found);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    image: `127.0.0.1:${port}/test/image:1`,
    username,
    password,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

const MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";

function digestOf(content: Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}

function text(files: ReadonlyMap<string, Buffer>, name: string): string {
  return files.get(name)?.toString("utf8") ?? "";
}

async function saved(image: string): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const unpack = extract();
  unpack.on("entry", (header, content, next) => {
    const parts: Buffer[] = [];
    content.on("data", (part) => parts.push(part as Buffer));
    content.once("end", () => {
      files.set(header.name, Buffer.concat(parts));
      next();
    });
  });
  const save = spawn("docker", ["save", image], { stdio: ["ignore", "pipe", "inherit"] });
  save.stdout.pipe(unpack);
  await new Promise((resolve, reject) => {
    unpack.once("finish", () => resolve(undefined));
    unpack.once("error", reject);
  });
  return files;
}
