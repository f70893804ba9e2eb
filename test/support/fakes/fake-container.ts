/** A container of the machine in memory. */

import { type DockerLimits, dockerLimits, type Size } from "../../../agent/containers/cgroup/limits.ts";
import type { ContainerSpec } from "../../../agent/containers/containers.ts";
import type { EnvdInit } from "../../../agent/containers/envd.ts";

export interface FakeContainer {
  readonly id: string;
  readonly spec: ContainerSpec;
  name: string;
  pid: number;
  running: boolean;
  frozen: boolean;
  netns: string | undefined;
  init: EnvdInit | undefined;
  watches: boolean;
  /** The image from which the last start restored the container's memory. */
  restored: string | undefined;
  cpuUs: number;
  /** Bytes of memory that its processes use. */
  memoryBytes: number;
  /** What Docker sets at a start. */
  limits: DockerLimits;
  /** What the kernel enforces since the last start. */
  size: Size | undefined;
}

export function newContainer(id: string, spec: ContainerSpec): FakeContainer {
  return {
    id,
    spec,
    name: spec.name,
    pid: 0,
    running: false,
    frozen: false,
    netns: undefined,
    init: undefined,
    watches: true,
    restored: undefined,
    cpuUs: 0,
    memoryBytes: 10_000_000,
    limits: dockerLimits(spec.resources),
    size: undefined,
  };
}

/** What the kernel enforces once Docker has set its limits. */
export const sizeOf = ({ NanoCpus, Memory }: DockerLimits): Size => ({
  cpuCount: NanoCpus / 1e9,
  memoryMB: Memory / 2 ** 20,
});
