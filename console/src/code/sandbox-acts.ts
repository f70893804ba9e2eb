/** Acts on sandboxes, in code. Pure. */

import type { CreateBody } from "../../../shared/api/sandboxes/sandbox-shapes.ts";
import { createCode } from "../sandboxes/sdk-code.ts";
import type { Act, Body, Told } from "./act.ts";
import { given, pythonOf, typescriptOf, word } from "./literals.ts";
import { sdkPython, sdkTypescript } from "./requests.ts";

const text = (value: string) => JSON.stringify(value);

/** With `svc`, and with one call of the SDK, whose name and arguments are given for each language. */
function called(title: string, svc: string, ts: string, py: string): Told {
  return { title, svc, typescript: sdkTypescript("Sandbox", `await ${ts};`), python: sdkPython("Sandbox", {}, py) };
}

function created(body: Body): Told {
  const { templateID, network, allow_internet_access: internet } = body.fields;
  const options = [
    ...(body.has("timeout") ? [`--timeout ${body.number("timeout")}s`] : []),
    ...body.entries("metadata").map(([name, value]) => `--metadata ${pairOf(name, value)}`),
    ...body.entries("envVars").map(([name, value]) => `--env ${pairOf(name, value)}`),
    ...(body.has("cpuCount") ? [`--cpu ${body.number("cpuCount")}`] : []),
    ...(body.has("memoryMB") ? [`--memory-size ${body.number("memoryMB")}`] : []),
    ...(internet === false ? ["--no-internet"] : []),
    ...((body.fields["volumeMounts"] ?? []) as readonly { name: string; path: string }[]).map(
      ({ name, path }) => `--volume ${word(`${name}=${path}`)}`,
    ),
  ];
  return {
    title: `Create a sandbox from ${String(templateID)}`,
    // The command has no option for rules of the network.
    ...(network === undefined ? { svc: ["svc sandbox create", word(String(templateID)), ...options].join(" ") } : {}),
    ...createCode(body.fields as CreateBody),
  };
}

function pairOf(name: string, value: Parameters<typeof word>[0]): string {
  return typeof value === "string" ? word(`${name}=${value}`) : `${word(name)}=${word(value)}`;
}

function networkChanged(id: string, { fields }: Body): Told {
  const { allow_internet_access: allowInternetAccess, ...rest } = fields;
  const network = Object.fromEntries(given({ ...rest, allowInternetAccess }));
  return {
    title: `Replace the network rules of ${id}`,
    typescript: sdkTypescript("Sandbox", `await Sandbox.updateNetwork(${text(id)}, ${typescriptOf(network)});`),
  };
}

/** Calls of a program to the sandbox itself, with its token. */
function inSandbox(id: string, curl: string): string {
  return [
    `token=$(curl -s -H "X-API-Key: $SVC_API_KEY" "$SVC_API_URL"/sandboxes/${word(id)} | jq -r .envdAccessToken)`,
    `curl -X POST -H "X-Access-Token: $token" ${curl}`,
  ].join("\n");
}

const envd = (id: string, path: string) => `"$(svc sandbox url ${word(id)} 49983)"${word(path)}`;
const connected = (id: string) => `const sandbox = await Sandbox.connect(${text(id)});`;
const connectedPython = (id: string) => `sandbox = Sandbox.connect(${pythonOf(id)})`;

function uploaded(id: string, body: Body): Told {
  const path = body.text("path");
  const name = path.split("/").at(-1) ?? "";
  const query = new URLSearchParams({ path }).toString();
  return {
    title: `Write ${path} of ${id}`,
    svc: `svc sandbox cp ${word(`./${name}`)} ${word(`${id}:${path}`)}`,
    typescript: [
      'import { readFile } from "node:fs/promises";',
      sdkTypescript(
        "Sandbox",
        connected(id),
        `await sandbox.files.write(${text(path)}, new Blob([await readFile(${text(`./${name}`)})]));`,
      ),
    ].join("\n"),
    python: sdkPython(
      "Sandbox",
      {},
      connectedPython(id),
      `with open(${pythonOf(`./${name}`)}, "rb") as file:`,
      `    sandbox.files.write(${pythonOf(path)}, file)`,
    ),
    http: inSandbox(
      id,
      `-H 'Content-Type: application/octet-stream' --data-binary ${word(`@./${name}`)} ${envd(id, `/files?${query}`)}`,
    ),
  };
}

function removed(id: string, body: Body): Told {
  const path = body.text("path");
  return {
    title: `Delete ${path} of ${id}`,
    svc: `svc sandbox exec ${word(id)} -- rm -rf -- ${word(path)}`,
    typescript: sdkTypescript("Sandbox", connected(id), `await sandbox.files.remove(${text(path)});`),
    python: sdkPython("Sandbox", {}, connectedPython(id), `sandbox.files.remove(${pythonOf(path)})`),
    http: inSandbox(id, `--json ${word(JSON.stringify({ path }))} ${envd(id, "/filesystem.Filesystem/Remove")}`),
  };
}

function signalled(id: string, { fields }: Body): Told {
  const { pid } = (fields["process"] ?? {}) as { readonly pid?: number };
  return {
    title: `Kill process ${pid} of ${id}`,
    svc: `svc sandbox exec ${word(id)} -- kill -9 ${pid}`,
    typescript: sdkTypescript("Sandbox", connected(id), `await sandbox.commands.kill(${pid});`),
    python: sdkPython("Sandbox", {}, connectedPython(id), `sandbox.commands.kill(${pid})`),
    http: inSandbox(id, `--json ${word(JSON.stringify(fields))} ${envd(id, "/process.Process/SendSignal")}`),
  };
}

export const SANDBOX_ACTS: readonly Act[] = [
  { method: "POST", path: "/v2/sandboxes", tell: (_ids, body) => created(body) },
  {
    method: "POST",
    path: "/sandboxes/:id/pause",
    tell: ([id = ""]) =>
      called(
        `Pause ${id}`,
        `svc sandbox pause ${word(id)}`,
        `Sandbox.pause(${text(id)})`,
        `Sandbox.pause(${text(id)})`,
      ),
  },
  {
    method: "POST",
    path: "/v2/sandboxes/:id/connect",
    tell: ([id = ""], body) => {
      const seconds = body.number("timeout");
      return {
        title: `Resume ${id}`,
        svc: `svc sandbox resume ${word(id)} --timeout ${seconds}s`,
        typescript: sdkTypescript(
          "Sandbox",
          `const sandbox = await Sandbox.connect(${text(id)}, { timeoutMs: ${seconds * 1000} });`,
        ),
        python: sdkPython("Sandbox", {}, `sandbox = Sandbox.connect(${pythonOf(id)}, timeout=${seconds})`),
      };
    },
  },
  {
    method: "DELETE",
    path: "/sandboxes/:id",
    tell: ([id = ""]) =>
      called(`Kill ${id}`, `svc sandbox kill ${word(id)}`, `Sandbox.kill(${text(id)})`, `Sandbox.kill(${text(id)})`),
  },
  {
    method: "POST",
    path: "/sandboxes/:id/timeout",
    tell: ([id = ""], body) => {
      const seconds = body.number("timeout");
      return called(
        `Set the end of ${id}`,
        `svc sandbox timeout ${word(id)} ${seconds}s`,
        `Sandbox.setTimeout(${text(id)}, ${seconds * 1000})`,
        `Sandbox.set_timeout(${text(id)}, ${seconds})`,
      );
    },
  },
  {
    method: "POST",
    path: "/sandboxes/:id/fork",
    tell: ([id = ""], body) => ({
      title: `Fork ${id}`,
      svc: `svc sandbox fork ${word(id)} --count ${body.number("count")}`,
      typescript: sdkTypescript(
        "Sandbox",
        connected(id),
        `const copies = await sandbox.fork({ count: ${body.number("count")} });`,
      ),
    }),
  },
  {
    method: "POST",
    path: "/sandboxes/:id/snapshots",
    tell: ([id = ""], body) => {
      const name = body.text("name");
      const named = name === "" ? "" : `, { name: ${text(name)} }`;
      return {
        title: `Take a snapshot of ${id}`,
        svc: `svc snapshot create ${word(id)}${name === "" ? "" : ` --name ${word(name)}`}`,
        typescript: sdkTypescript("Sandbox", `await Sandbox.createSnapshot(${text(id)}${named});`),
      };
    },
  },
  {
    method: "POST",
    path: "/sandboxes/:id/rewind",
    tell: ([id = ""], body) => ({
      title: `Rewind ${id} to ${body.text("snapshotID")}`,
      svc: `svc sandbox rewind ${word(id)} ${word(body.text("snapshotID"))}`,
    }),
  },
  { method: "PUT", path: "/sandboxes/:id/network", tell: ([id = ""], body) => networkChanged(id, body) },
  { method: "POST", path: "/sandboxes/:id/envd/files", tell: ([id = ""], body) => uploaded(id, body) },
  {
    method: "POST",
    path: "/sandboxes/:id/envd/filesystem.Filesystem/Remove",
    tell: ([id = ""], body) => removed(id, body),
  },
  {
    method: "POST",
    path: "/sandboxes/:id/envd/process.Process/SendSignal",
    tell: ([id = ""], body) => signalled(id, body),
  },
];
