/** What `scripts/up` writes beside the settings of the programs into one environment file, and the other scripts read. */

import { Type } from "typebox";

export const ScriptSettings = Type.Object({
  instance: Type.String({ description: "Name of the installation on this machine" }),
  apiUrl: Type.String({ description: "Where this machine's programs reach the platform API" }),
  sandboxUrl: Type.String({ description: "Where they reach the edge" }),
  apiKey: Type.String({ description: "Key of the first project" }),
});
