/** The folders of a machine whose files are in a backup, and who may read each file there. */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Instance } from "../base/instance.ts";
import { serviceUser } from "../evidence/files.ts";
import type { Access } from "./manifest.ts";

/** By their names in a backup. */
export function foldersOf({ places: { config, state } }: Instance): Readonly<Record<string, string>> {
  return {
    config,
    "agent-membership": join(state, "agent/membership"),
    "edge-membership": join(state, "edge/membership"),
  };
}

/** Where a file of a backup belongs on the machine. Undefined: it is no file of these folders. */
export function placeOf(instance: Instance, path: string): string | undefined {
  const [folder = "", ...below] = path.split("/");
  const to = new Map(Object.entries(foldersOf(instance))).get(folder);
  return to === undefined || below.length === 0 ? undefined : join(to, ...below);
}

/** Undefined: the file has gone. The user has another number on another machine, so it is named. */
export async function accessOf(path: string): Promise<Access | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  const service = serviceUser();
  return {
    mode: found.mode & 0o777,
    owner: found.uid === service?.uid ? "service" : "root",
    group: found.gid === service?.gid ? "service" : "root",
  };
}
