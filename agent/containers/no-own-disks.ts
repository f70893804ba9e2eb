/** The part of a container engine whose containers have no disks of their own: their layers are the engine's. */

import type { Containers } from "./containers.ts";

type OwnDisks = Pick<
  Containers,
  | "createAhead"
  | "furnishAhead"
  | "hasOwnDisk"
  | "copyAhead"
  | "keep"
  | "flushDisk"
  | "keepImageBelow"
  | "keepBelow"
  | "diskFile"
  | "diskPlace"
  | "thawDisk"
  | "disks"
  | "removeOrphans"
>;

export const NO_OWN_DISKS: OwnDisks = {
  createAhead: () => Promise.resolve(undefined),
  furnishAhead: () => Promise.resolve(false),
  hasOwnDisk: () => false,
  copyAhead: () => Promise.resolve(),
  flushDisk: () => Promise.resolve(),
  keep: () => Promise.resolve(),
  keepImageBelow: () => Promise.resolve(),
  keepBelow: () => Promise.resolve(),
  diskPlace: () => Promise.resolve(undefined),
  diskFile: () => Promise.resolve(undefined),
  thawDisk: () => Promise.resolve(),
  disks: () => Promise.resolve([]),
  removeOrphans: () => Promise.resolve(),
};
