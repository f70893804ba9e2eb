/** The same act as code: what a form asks for, in TypeScript and in Python. Pure. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";

export interface SdkCode {
  readonly typescript: string;
  readonly python: string;
}

/** The code that creates a sandbox as the request does. */
export function createCode(body: CreateBody): SdkCode {
  const { templateID, timeout, metadata, envVars, allow_internet_access: internet, network } = body;
  const ts: string[] = [];
  const py: string[] = [];
  const add = (name: string, pyName: string, value: unknown, pyValue: unknown = value) => {
    if (value === undefined) return;
    ts.push(`  ${name}: ${JSON.stringify(value)},`);
    py.push(`    ${pyName}=${pythonOf(pyValue)},`);
  };
  add("timeoutMs", "timeout", timeout === undefined ? undefined : timeout * 1000, timeout);
  add("metadata", "metadata", metadata);
  add("envs", "envs", envVars);
  add("allowInternetAccess", "allow_internet_access", internet);
  if (network !== undefined) {
    ts.push(`  network: ${JSON.stringify(network)},`);
    py.push(`    network=${pythonOf({ allow_out: network.allowOut, deny_out: network.denyOut })},`);
  }
  const [open, close] = ts.length === 0 ? ["", ""] : [", {\n", "\n}"];
  return {
    typescript: `import { Sandbox } from "e2b";\n\nconst sandbox = await Sandbox.create(${JSON.stringify(templateID)}${open}${ts.join("\n")}${close});`,
    python: `from e2b import Sandbox\n\nsandbox = Sandbox.create(\n    ${pythonOf(templateID)},\n${py.join("\n")}${py.length === 0 ? "" : "\n"})`,
  };
}

/** The code that goes on with a sandbox. */
export function connectCode(id: string): SdkCode {
  return {
    typescript: `import { Sandbox } from "e2b";\n\nconst sandbox = await Sandbox.connect(${JSON.stringify(id)});`,
    python: `from e2b import Sandbox\n\nsandbox = Sandbox.connect(${pythonOf(id)})`,
  };
}

function pythonOf(value: unknown): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    const given = Object.entries(value).filter(([, each]) => each !== undefined);
    return `{${given.map(([name, each]) => `${JSON.stringify(name)}: ${pythonOf(each)}`).join(", ")}}`;
  }
  return value === undefined ? "None" : JSON.stringify(value);
}
