/** The same act as code: what a form asks for, in TypeScript and in Python. Pure. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { given, pythonOf, readsEnvironment, typescriptOf } from "../code/literals.ts";

export interface SdkCode {
  readonly typescript: string;
  readonly python: string;
}

/** The code that creates a sandbox as the request does. */
export function createCode(body: CreateBody): SdkCode {
  const { templateID, timeout, metadata, envVars, allow_internet_access: internet, network, volumeMounts } = body;
  const mounts = volumeMounts && Object.fromEntries(volumeMounts.map(({ name, path }) => [path, name]));
  const typescript = {
    timeoutMs: timeout === undefined ? undefined : timeout * 1000,
    metadata,
    envs: envVars,
    allowInternetAccess: internet,
    network,
    volumeMounts: mounts,
  };
  const python = {
    timeout,
    metadata,
    envs: envVars,
    allow_internet_access: internet,
    network: network && { allow_out: network.allowOut, deny_out: network.denyOut, rules: network.rules },
    volume_mounts: mounts,
  };
  const options = given(typescript).map(([name, value]) => `  ${name}: ${typescriptOf(value)},\n`);
  const named = given(python).map(([name, value]) => `    ${name}=${pythonOf(value)},\n`);
  const rest = options.length === 0 ? "" : `, {\n${options.join("")}}`;
  return {
    typescript: `${withoutOption(body, "//")}import { Sandbox } from "e2b";\n\nconst sandbox = await Sandbox.create(${JSON.stringify(templateID)}${rest});`,
    python: `${withoutOption(body, "#")}${readsEnvironment(body) ? "import os\n\n" : ""}from e2b import Sandbox\n\nsandbox = Sandbox.create(\n    ${pythonOf(templateID)},\n${named.join("")})`,
  };
}

/** What of the request no option of the SDK says. */
function withoutOption({ cpuCount, memoryMB }: CreateBody, comment: string): string {
  const sizes = given({ cpuCount, memoryMB }).map(([name]) => name);
  return sizes.length === 0 ? "" : `${comment} Only the request itself has ${sizes.join(" and ")}.\n`;
}

/** The code that goes on with a sandbox. */
export function connectCode(id: string): SdkCode {
  return {
    typescript: `import { Sandbox } from "e2b";\n\nconst sandbox = await Sandbox.connect(${JSON.stringify(id)});`,
    python: `from e2b import Sandbox\n\nsandbox = Sandbox.connect(${pythonOf(id)})`,
  };
}
