/** Containers of the machine in memory that were started before their processes are known. */

import type { Annotations } from "../../../agent/containers/annotations.ts";
import type { ContainerSpec, Containers } from "../../../agent/containers/containers.ts";

/** The image below every stored disk. */
const IMAGE_BELOW = "sha256:below";

interface FakeShellsDeps {
  readonly step: (name: string) => Promise<void>;
  readonly create: (spec: ContainerSpec) => Promise<string>;
  /** Restores the memory that the container's notes name; returns its first process. */
  readonly restored: (id: string) => number;
  readonly end: (id: string) => void;
}

export interface FakeShells {
  /** Whether containers have disks of their own, so that shells can be made. */
  possible: boolean;
}

export function fakeShells({ step, create, restored, end }: FakeShellsDeps) {
  const waiting = new Set<string>();
  const state = { possible: false };
  const containers: Pick<Containers, "createWithoutDisk" | "giveDisk" | "imageBelow"> = {
    createWithoutDisk: async (spec) => (state.possible ? create(spec) : undefined),
    async giveDisk(id) {
      await step("give disk");
      return `/layers/${id}`;
    },
    imageBelow: () => Promise.resolve(state.possible ? IMAGE_BELOW : undefined),
  };
  const annotations: Pick<Annotations, "shell" | "call" | "shellProcess"> = {
    async shell(id) {
      await step("shell annotations");
      waiting.add(id);
    },
    async call(id) {
      await step("call");
      if (!waiting.delete(id)) throw new Error("the shell does not answer");
      return restored(id);
    },
    shellProcess: () => Promise.resolve(undefined),
  };
  return Object.assign(state, {
    containers,
    annotations,
    imageOf: () => (state.possible ? { image: IMAGE_BELOW } : {}),
    /** Its notes are gone: one that waits ends. */
    removed(id: string) {
      if (waiting.delete(id)) end(id);
    },
  });
}
