/** Acts on the content of volumes, in code. Pure. */

import type { Act, Told } from "./act.ts";
import { pythonOf, word } from "./literals.ts";
import { sdkPython, sdkTypescript } from "./requests.ts";

const text = (value: string) => JSON.stringify(value);
const connected = (id: string) => `const volume = await Volume.connect(${text(id)});`;
const connectedPython = (id: string) => `volume = Volume.connect(${pythonOf(id)})`;

/** The content of a volume is reached with the volume's own token. */
function withToken(id: string, method: string, request: { readonly part: string; readonly query: object }): string {
  const query = new URLSearchParams({ ...request.query }).toString();
  return [
    `token=$(curl -s -H "X-API-Key: $SVC_API_KEY" "$SVC_API_URL"/volumes/${word(id)} | jq -r .token)`,
    `curl -X ${method} -H "Authorization: Bearer $token" "$SVC_API_URL"${word(`/volumecontent/${id}/${request.part}?${query}`)}`,
  ].join("\n");
}

function removed(id: string, path: string): Told {
  return {
    title: `Delete ${path} of the volume ${id}`,
    typescript: sdkTypescript("Volume", connected(id), `await volume.remove(${text(path)});`),
    python: sdkPython("Volume", {}, connectedPython(id), `volume.remove(${pythonOf(path)})`),
    http: withToken(id, "DELETE", { part: "path", query: { path } }),
  };
}

function directoryMade(id: string, path: string): Told {
  return {
    title: `Make the directory ${path} of the volume ${id}`,
    typescript: sdkTypescript("Volume", connected(id), `await volume.makeDir(${text(path)});`),
    python: sdkPython("Volume", {}, connectedPython(id), `volume.make_dir(${pythonOf(path)})`),
    http: withToken(id, "POST", { part: "dir", query: { path } }),
  };
}

function written(id: string, path: string): Told {
  const file = `./${path.split("/").at(-1) ?? ""}`;
  const content = `new Blob([await readFile(${text(file)})])`;
  return {
    title: `Write ${path} of the volume ${id}`,
    typescript: [
      'import { readFile } from "node:fs/promises";',
      sdkTypescript("Volume", connected(id), `await volume.writeFile(${text(path)}, ${content}, { force: true });`),
    ].join("\n"),
    python: sdkPython(
      "Volume",
      {},
      connectedPython(id),
      `with open(${pythonOf(file)}, "rb") as file:`,
      `    volume.write_file(${pythonOf(path)}, file, force=True)`,
    ),
    http: [
      withToken(id, "PUT", { part: "file", query: { path, force: "true" } }),
      `-H 'Content-Type: application/octet-stream' --data-binary ${word(`@${file}`)}`,
    ].join(" \\\n  "),
  };
}

export const VOLUME_ACTS: readonly Act[] = [
  { method: "DELETE", path: "/volumecontent/:id/path", tell: ([id = ""], body) => removed(id, body.text("path")) },
  { method: "POST", path: "/volumecontent/:id/dir", tell: ([id = ""], body) => directoryMade(id, body.text("path")) },
  { method: "PUT", path: "/volumecontent/:id/file", tell: ([id = ""], body) => written(id, body.text("path")) },
];
