/** The sandbox around the server: its variables, which envd has, and the sign that this memory continues elsewhere. */

import { readFileSync, statSync } from "node:fs";
import { request } from "node:http";
import { possible, type Variables } from "./variables.ts";

const ANSWER_MS = 5_000;
const MOST_BYTES = 4 * 1024 * 1024;

export interface Sandbox {
  /**
   * The sandbox's variables; undefined when envd does not answer or refuses the token.
   * @param accessToken of the caller
   */
  variables(accessToken: string | undefined): Promise<Variables | undefined>;
  /** Another value after each start, resume and fork; empty where the platform has not named the sandbox. */
  life(): string;
}

/**
 * @param envd address of envd
 * @param identityFiles that envd writes whenever the platform starts, resumes or copies the sandbox; an older envd lacks some
 */
export function sandboxAround(envd: string, identityFiles: readonly string[]): Sandbox {
  return {
    async variables(accessToken) {
      try {
        return possible(await ask(new URL("/envs", envd), accessToken));
      } catch {
        return undefined;
      }
    },
    life: () => identityFiles.map(contentWithTime).join(""),
  };
}

/** With the time of its last change, because not each of these files has another content each time. Empty without the file. */
function contentWithTime(path: string): string {
  try {
    const { mtimeNs } = statSync(path, { bigint: true });
    return `${mtimeNs} ${readFileSync(path, "utf8")}\n`;
  } catch {
    return "";
  }
}

/** Each time over a new connection: the ones from before a pause do not survive it. */
async function ask(url: URL, accessToken: string | undefined): Promise<Record<string, unknown>> {
  const headers = accessToken === undefined ? {} : { "x-access-token": accessToken };
  const text = await new Promise<string>((resolve, reject) => {
    const asked = request(url, { agent: false, headers, signal: AbortSignal.timeout(ANSWER_MS) }, (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on("data", (piece: Buffer) => {
        size += piece.length;
        if (size > MOST_BYTES) response.destroy(new Error("the answer of envd is too long"));
        else pieces.push(piece);
      });
      response.once("error", reject);
      response.once("end", () => {
        if (response.statusCode === 200) resolve(Buffer.concat(pieces).toString("utf8"));
        else reject(new Error(`envd answered ${response.statusCode ?? 0}`));
      });
    });
    asked.once("error", reject);
    asked.end();
  });
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error("the answer of envd is no object");
  return value as Record<string, unknown>;
}
