/** Volumes of an agent that are directories without a file system of their own, and the program that works on their files. */

import { mkdirSync, readdirSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "../../../agent/host/command.ts";
import { nativeProgram } from "../../../agent/host/native-program.ts";
import { createLayout, type Volumes } from "../../../agent/volumes/volumes.ts";
import { AppError } from "../../../shared/http/errors.ts";

export function directoryVolumes(root: string): Volumes {
  mkdirSync(root, { recursive: true });
  const sizes = new Map<string, number>();
  return {
    async make(id, sizeMb) {
      if (sizes.has(id)) return;
      sizes.set(id, sizeMb);
      await mkdir(join(root, id));
      await createLayout(join(root, id));
    },
    async open(id) {
      if (!sizes.has(id)) throw new AppError("not_found", "this node does not have the volume");
      return Promise.resolve(join(root, id));
    },
    async remove(id) {
      sizes.delete(id);
      await rm(join(root, id), { recursive: true, force: true });
    },
    capacityMb: (id) => Promise.resolve(sizes.get(id)),
    list: () => readdirSync(root).map((id) => ({ id, sizeMb: sizes.get(id) ?? 0, usedBytes: 0 })),
  };
}

/** Compiles the program once for each caller. */
export function volumeProgram(directory: string): () => Promise<string> {
  const made = { program: undefined as Promise<string> | undefined };
  return () => (made.program ??= nativeProgram(runCommand, "volumes/svc-volume-files", directory));
}
