/** Every reader that is fuzzed. */

import type { Reader } from "./reader.ts";
import { archives } from "./readers/archives.ts";
import { connections } from "./readers/connections.ts";
import { dns } from "./readers/dns.ts";
import { envd } from "./readers/envd.ts";
import { firstBytes } from "./readers/first-bytes.ts";
import { frontDoor } from "./readers/front-door.ts";
import { host } from "./readers/host.ts";
import { layers } from "./readers/layers.ts";
import { names } from "./readers/names.ts";
import { rewriter } from "./readers/rewriter.ts";
import { steps } from "./readers/steps.ts";

export const readers: readonly Reader[] = [
  ...firstBytes,
  ...dns,
  ...names,
  ...steps,
  ...archives,
  ...layers,
  ...envd,
  ...connections,
  ...host,
  ...frontDoor,
  ...rewriter,
];
