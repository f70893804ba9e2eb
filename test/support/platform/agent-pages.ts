/** The pages of an instance's agent for operators: `/readyz`, `/metrics`. */

import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { type Platform, readEnvFile } from "./platform.ts";

export interface AgentPage {
  readonly status: number;
  readonly text: string;
}

const LIMIT_MS = 5_000;

/** A node that has joined speaks TLS, with a certificate of the platform's own authority, which names no address. */
export function agentPage(
  platform: Platform,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<AgentPage> {
  const own = readEnvFile(`${platform.paths.etc}/config.env`);
  const made = readEnvFile(`${platform.paths.etc}/agent.env`);
  const setting = (name: string) => own.get(name) ?? made.get(name) ?? "";
  const joined = setting("SVC_ORCHESTRATOR_URL").startsWith("https:");
  const host = setting("SVC_AGENT_HOST");
  const port = Number(setting("SVC_AGENT_PORT"));
  const common = { host, port, path, headers, agent: false, timeout: LIMIT_MS } as const;
  return new Promise((resolve, reject) => {
    const asked = joined ? tlsRequest({ ...common, rejectUnauthorized: false }) : plainRequest(common);
    asked.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.once("error", reject);
    });
    asked.once("timeout", () => asked.destroy(new Error(`the agent does not answer ${path} within ${LIMIT_MS} ms`)));
    asked.once("error", reject);
    asked.end();
  });
}

/** The status of a page; 0 when nothing answers. */
export function agentStatus(platform: Platform, path = "/readyz"): Promise<number> {
  return agentPage(platform, path).then(
    ({ status }) => status,
    () => 0,
  );
}
