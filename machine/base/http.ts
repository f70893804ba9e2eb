/** Requests to programs of this machine, by TCP or over a Unix socket. An answer of any status is an answer. */

import { type IncomingHttpHeaders, request as plain } from "node:http";
import { request as secured } from "node:https";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Asked {
  readonly url: string;
  readonly socketPath?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly limitMs?: number;
}

const LIMIT_MS = 5_000;
const MOST = 64 * 1024 * 1024;

/** The certificate of a node names no address, and answers here hold no secret: it is not verified. @throws with the reason in words */
export function ask({ url, socketPath, headers = {}, limitMs = LIMIT_MS }: Asked): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const given = { headers, agent: false, signal: AbortSignal.timeout(limitMs) } as const;
    const via = socketPath === undefined ? {} : { socketPath };
    const asked = url.startsWith("https:")
      ? secured(url, { ...given, ...via, rejectUnauthorized: false })
      : plain(url, { ...given, ...via });
    const fail = (error: Error & { code?: string }) => {
      const reason = error.name === "AbortError" || error.name === "TimeoutError" ? undefined : error.code;
      const words = reason ?? (error.name === "Error" ? error.message : `no answer within ${limitMs / 1000} s`);
      reject(new Error(`${socketPath ?? url}: ${words}`, { cause: error }));
    };
    asked.on("error", fail).on("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (text.length > MOST) response.destroy(new Error("the answer is too long"));
      });
      response.on("error", fail);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    asked.end();
  });
}
