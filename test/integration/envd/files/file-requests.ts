/** Requests for an envd's files over HTTP: one envd for each test file, one directory for each test. */

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { beforeEach } from "vitest";
import { type SharedEnvd, sharedEnvd } from "../running-envd.ts";

export const OCTETS = { "content-type": "application/octet-stream" };

interface Reply {
  readonly status: number | undefined;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

export interface FileRequests {
  readonly envd: SharedEnvd["envd"];
  /** The directory of the current test. */
  readonly dir: string;
  /** The name of that directory in the user's home. */
  readonly name: string;
  readonly at: (name: string) => string;
  readonly urlOf: (query: Record<string, string>) => string;
  readonly put: (path: string, body: string | Buffer, headers?: Record<string, string>) => Promise<Response>;
  /** Downloads without the Accept-Encoding header that fetch would add. */
  readonly get: (path: string, headers?: Record<string, string>, method?: string) => Promise<Reply>;
}

export function fileRequests(): FileRequests {
  const { envd } = sharedEnvd();
  let count = 0;
  beforeEach(() => {
    count += 1;
    mkdirSync(requests.dir);
  });

  const requests: FileRequests = {
    envd,
    get name() {
      return `f${count}`;
    },
    get dir() {
      return join(envd.home, requests.name);
    },
    at: (name) => join(requests.dir, name),
    urlOf: (query) => `${envd.url}/files?${new URLSearchParams({ username: "user", ...query }).toString()}`,
    put: (path, body, headers = {}) =>
      fetch(requests.urlOf({ path }), { method: "POST", headers: { ...OCTETS, ...headers }, body }),
    get: (path, headers = {}, method = "GET") =>
      new Promise((resolve, reject) => {
        const call = request(requests.urlOf({ path }), { headers, method }, (response) => {
          const pieces: Buffer[] = [];
          response.on("data", (piece: Buffer) => pieces.push(piece));
          response.on("end", () =>
            resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(pieces) }),
          );
          response.on("error", reject);
        });
        call.on("error", reject);
        call.end();
      }),
  };
  return requests;
}

export function shell(line: string): Buffer {
  return execFileSync("/bin/sh", ["-c", line]);
}
