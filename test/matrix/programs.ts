/** All rows of the matrix. */

import type { Program } from "./program.ts";
import { KERNEL } from "./rows/kernel.ts";
import { LANGUAGES } from "./rows/languages.ts";
import { SCREENS } from "./rows/screens.ts";
import { SERVERS } from "./rows/servers.ts";
import { TOOLS } from "./rows/tools.ts";

export const PROGRAMS: readonly Program[] = [...LANGUAGES, ...SERVERS, ...TOOLS, ...KERNEL, ...SCREENS];
