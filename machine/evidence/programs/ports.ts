/** Who listens on the ports of the platform. */

import type { Program } from "../../base/instance.ts";
import type { Machine } from "../../base/this-machine.ts";
import type { PortSeen } from "../evidence.ts";

const PORTS: Readonly<Record<Program, readonly string[]>> = {
  orchestrator: ["SVC_API_PORT", "SVC_EDGE_PORT", "SVC_NODES_PORT"],
  agent: ["SVC_AGENT_PORT", "SVC_PROXY_PORT"],
  edge: ["SVC_EDGE_PORT", "SVC_EDGE_STATUS_PORT"],
};

export async function listPorts({ instance, run }: Machine): Promise<readonly PortSeen[]> {
  const { status, stdout, problem } = await run("ss", ["-Hltnp"]);
  if (status !== 0) throw new Error(problem ?? "ss failed");
  return instance.programs.flatMap((program) =>
    PORTS[program].flatMap((setting): readonly PortSeen[] => {
      const port = Number(instance.setting(program, setting));
      return Number.isInteger(port) && port > 0 ? [{ program, setting, port, by: listener(stdout, port) }] : [];
    }),
  );
}

/** Pure. @param text lines of `ss -Hltnp` */
export function listener(text: string, port: number): PortSeen["by"] {
  const line = text.split("\n").find((one) => one.trim().split(/\s+/)[3]?.endsWith(`:${port}`) === true);
  if (line === undefined) return undefined;
  const [, name = "a program of another user", pid = "0"] = /users:\(\("([^"]*)",pid=(\d+)/.exec(line) ?? [];
  return { name, pid: Number(pid) };
}
