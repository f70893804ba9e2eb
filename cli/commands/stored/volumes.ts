/** Disks that outlive sandboxes. */

import { type Api, createApi, type Item } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { EXIT, Failure } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { showList } from "../../output/watch.ts";
import { each } from "../each.ts";

const view: View<Item<"GET /volumes">> = {
  name: ({ volumeID }) => `volume/${volumeID}`,
  columns: [
    { title: "NAME", of: ({ name }) => name },
    { title: "ID", of: ({ volumeID }) => volumeID },
  ],
};

const entryView: View<Item<"GET /volumecontent/{volumeID}/dir">> = {
  name: ({ path }) => path,
  columns: [
    {
      title: "MODE",
      of: ({ type, mode }) => `${{ directory: "d", symlink: "l", file: "-", unknown: "?" }[type]}${permissions(mode)}`,
    },
    { title: "OWNER", of: ({ uid, gid }) => `${uid}:${gid}` },
    { title: "SIZE", of: ({ type, size }) => (type === "file" ? bytes(size) : "-") },
    { title: "AGE", of: ({ mtime }) => age(mtime), moving: true },
    { title: "NAME", of: ({ name, target }) => (target === undefined ? name : `${name} -> ${target}`) },
  ],
};

function permissions(mode: number): string {
  return Array.from("rwxrwxrwx", (letter, index) => ((mode >> (8 - index)) & 1 ? letter : "-")).join("");
}

export const create: Action = async ({ api, out }, { first: name }) => {
  const connection = await api();
  const { volumeID } = await connection.call("POST /volumes", { body: { name } });
  await out.line(volumeID);
};

export const list: Action = async (context, _args, options) => {
  const api = await context.api();
  await showList(context, options, view, () => api.call("GET /volumes", {}));
};

export const look: Action = async (context, { first, second: path }, options) => {
  const api = await context.api();
  const { apiUrl } = await context.settings();
  const params = { volumeID: await idOf(api, first) };
  const { token } = await api.call("GET /volumes/{volumeID}", { params });
  const { timeoutMs, signal } = context;
  const content = createApi({ url: apiUrl, headers: { authorization: `Bearer ${token}` }, timeoutMs, signal });
  await showList(context, options, entryView, () =>
    content.call("GET /volumecontent/{volumeID}/dir", { params, query: { path: path === "" ? "/" : path } }),
  );
};

export const remove: Action = async (context, { rest }) => {
  const api = await context.api();
  return each(context, rest, async (named) => {
    await api.call("DELETE /volumes/{volumeID}", { params: { volumeID: await idOf(api, named) } });
    return `volume/${named} deleted`;
  });
};

/** People know volumes by their names, the API by their ids. */
async function idOf(api: Api, named: string): Promise<string> {
  const volumes = await api.call("GET /volumes", {});
  const found = volumes.find(({ volumeID }) => volumeID === named) ?? volumes.find(({ name }) => name === named);
  if (found === undefined) throw new Failure(`there is no volume '${named}'`, { exitCode: EXIT.notFound });
  return found.volumeID;
}
