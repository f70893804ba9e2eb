/** The sources of the library that is loaded into CRIU, as scripts/host/criu/install compiles them. */

import { join } from "node:path";

const PLACE = join(import.meta.dirname, "../../../scripts/host/criu");
const NAMES = ["preload", "walk", "paths", "links", "mounts", "sockets", "archives"];
const OF_DUMPS = ["cgroups", "pages", "log"];

export const PRELOAD_SOURCES: readonly string[] = [
  ...NAMES.map((name) => join(PLACE, `criu-${name}.c`)),
  ...OF_DUMPS.map((name) => join(PLACE, `dump/criu-${name}.c`)),
];
