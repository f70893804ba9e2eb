/**
 * Reads images out of Docker, which compares each layer with its digest on the way. Snapshots of one template share their image, so
 * one that was read a short time ago counts for the next.
 */

import type { CheckedPart } from "../../../shared/agent-api/snapshot-check-shapes.ts";
import { AppError } from "../../../shared/http/errors.ts";
import type { Containers } from "../../containers/containers.ts";
import { type CheckOptions, partNotes } from "./part.ts";

export interface ImageReads {
  /**
   * @param image its name or id
   * @param absent the state of the part when Docker has none of this name
   */
  check(
    of: { readonly image: string; readonly absent: "missing" | "unread" },
    options: Pick<CheckOptions, "signal" | "read">,
  ): Promise<CheckedPart>;
}

const COUNTS_MS = 600_000;

export function createImageReads(containers: Pick<Containers, "image" | "save">, now: () => number): ImageReads {
  const known = new Map<string, { readonly at: number; readonly part: CheckedPart }>();
  return {
    async check({ image: name, absent }, { signal, read }) {
      for (const [id, { at }] of known) if (now() - at >= COUNTS_MS) known.delete(id);
      const notes = partNotes("image", read);
      const found = await containers.image(name);
      if (found === undefined) {
        notes.fault(absent, `Docker has no image of the name ${name}`);
        return notes.outcome("whole");
      }
      const before = known.get(found.id);
      if (before !== undefined) return before.part;
      try {
        for await (const chunk of await containers.save(found.id, signal)) notes.read((chunk as Uint8Array).length);
        signal.throwIfAborted();
      } catch (error) {
        signal.throwIfAborted();
        notes.fault("damaged", `Docker cannot read the image ${name}: ${AppError.from(error).message}`);
      }
      const part = notes.outcome("whole");
      // The node may pull a damaged image anew before the next check.
      if (part.state === "whole") known.set(found.id, { at: now(), part });
      return part;
    },
  };
}
