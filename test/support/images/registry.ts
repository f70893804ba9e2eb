/** A registry with one image behind basic auth: it serves as much of the protocol as Docker's pull needs. */

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { listening } from "../peers/listening.ts";
import { savedImage } from "./saved-image.ts";

export interface Registry {
  /** host:port/name:tag. */
  readonly image: string;
  readonly username: string;
  readonly password: string;
  close(): void;
}

/** Serves `source`, an image of this machine's Docker daemon. */
export async function registryWith(source: string): Promise<Registry> {
  const { config, layers } = await savedImage(source);
  const blobs = new Map<string, Buffer>();
  const blob = (content: Buffer, mediaType: string) => {
    const digest = digestOf(content);
    blobs.set(digest, content);
    return { mediaType, size: content.length, digest };
  };
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: blob(config, "application/vnd.docker.container.image.v1+json"),
      layers: layers.map((layer) => blob(gzipSync(layer), "application/vnd.docker.image.rootfs.diff.tar.gzip")),
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
  const port = await listening(server);
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
