/** Requests to an orchestrator, over connections that are kept open. */

import { Agent, request } from "node:http";
import { ADMIN_TOKEN } from "../../support/cluster/cluster.ts";

interface Answer {
  readonly text: string;
  /** The token of the next page. */
  readonly next: string | undefined;
}

/** Rejects for any answer but a success. */
export type Ask = (method: string, path: string, body?: object) => Promise<Answer>;

interface Asking {
  /** A caller of an orchestrator. */
  at(url: string, headers: Readonly<Record<string, string>>): Ask;
  stop(): void;
}

/** @param most connections at a time to each orchestrator */
export function asking(most: number): Asking {
  const agent = new Agent({ keepAlive: true, maxSockets: most });
  return {
    at: (url, credentials) => (method, path, body) =>
      new Promise((resolve, reject) => {
        const text = body === undefined ? "" : JSON.stringify(body);
        const length = Buffer.byteLength(text);
        const headers = { ...credentials, "content-type": "application/json", "content-length": length };
        const asked = request(`${url}${path}`, { agent, method, headers }, (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.once("error", reject);
          response.once("end", () => {
            const answer = Buffer.concat(parts).toString();
            const next = response.headers["x-next-token"]?.toString();
            if ((response.statusCode ?? 500) < 300) resolve({ text: answer, next });
            else reject(new Error(`${method} ${path} answered ${response.statusCode}: ${answer}`));
          });
        });
        asked.once("error", reject);
        asked.end(text);
      }),
    stop: () => agent.destroy(),
  };
}

/** Makes a project at an orchestrator; returns the credentials of a caller who may use it. */
export async function newProject(asks: Asking, url: string): Promise<Readonly<Record<string, string>>> {
  const admin = asks.at(url, { "x-admin-token": ADMIN_TOKEN });
  const { teamID } = JSON.parse((await admin("POST", "/admin/projects", { name: "scale" })).text) as { teamID: string };
  const made = await admin("POST", `/admin/teams/${teamID}/api-keys`, { name: "scale" });
  return { "x-api-key": (JSON.parse(made.text) as { key: string }).key };
}

/** Returns the sandbox's id. */
export async function create(ask: Ask): Promise<string> {
  const { text } = await ask("POST", "/v2/sandboxes", { templateID: "base", timeout: 3_600 });
  return (JSON.parse(text) as { sandboxID: string }).sandboxID;
}

/** Creates so many sandboxes, with one request under way for each of `callers`; returns how many a second. */
export async function createsBySecond(callers: readonly Ask[], count: number): Promise<number> {
  let left = count;
  const began = performance.now();
  await Promise.all(
    callers.map(async (ask) => {
      while (left-- > 0) await create(ask);
    }),
  );
  return (count / (performance.now() - began)) * 1_000;
}
