/** Requests for the content of a volume, which the console makes without the volume's token. */

import type { volumeContentApi } from "../../../shared/api/volumes/content.ts";
import { API, get, type Reply, send } from "../base/client.ts";
import { notePerformed } from "../base/performed.ts";
import { operatorProject } from "../base/session.ts";
import type { Entry } from "../sandbox/files/entries.ts";

type VolumeEntry = Reply<typeof volumeContentApi.listVolumeDirectory>[number];

const routeOf = (id: string, part: "path" | "dir" | "file") => `/volumecontent/${encodeURIComponent(id)}/${part}`;

/** @throws {Failed} */
export async function listDirectory(id: string, path: string, signal: AbortSignal): Promise<readonly Entry[]> {
  return (await get<VolumeEntry[]>(routeOf(id, "dir"), { path }, signal)).map(toEntry);
}

/** The address of a download: the server answers it as an attachment, whatever it is. */
export function downloadUrl(id: string, path: string): string {
  const project = operatorProject.value;
  const query = new URLSearchParams({ path, ...(project === undefined ? {} : { project }) });
  return `${API}${routeOf(id, "file")}?${query.toString()}`;
}

/** Replaces a file of the same name. @throws {Failed} */
export async function writeVolumeFile(id: string, path: string, content: Blob): Promise<void> {
  const headers = { "content-type": "application/octet-stream" };
  await change("PUT", routeOf(id, "file"), { query: { path, force: true }, body: content, headers });
}

/** @throws {Failed} */
export async function makeVolumeDirectory(id: string, path: string): Promise<void> {
  await change("POST", routeOf(id, "dir"), { query: { path } });
}

/** A directory goes with everything in it. @throws {Failed} */
export async function removeFromVolume(id: string, path: string): Promise<void> {
  await change("DELETE", routeOf(id, "path"), { query: { path } });
}

type Sent = NonNullable<Parameters<typeof send>[2]> & { readonly query: { readonly path: string } };

async function change(method: string, path: string, options: Sent): Promise<void> {
  await send(method, API + path, options);
  notePerformed({ method, path, body: { path: options.query.path } });
}

function toEntry({ name, path, type, size, mode, uid, gid, mtime }: VolumeEntry): Entry {
  return {
    name,
    path,
    type: type === "directory" ? "FILE_TYPE_DIRECTORY" : type,
    size,
    permissions: mode.toString(8).padStart(4, "0"),
    owner: `${uid}:${gid}`,
    modifiedTime: mtime,
  };
}
