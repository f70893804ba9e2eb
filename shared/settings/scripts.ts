/** Settings that `scripts/up` adds to the environment file of the programs, for the other scripts. */

import { Type } from "typebox";

export const ScriptSettings = Type.Object({
  instance: Type.String({ description: "Name of the installation on this machine" }),
  apiUrl: Type.String({ description: "URL under which this machine's programs reach the platform API" }),
  sandboxUrl: Type.String({ description: "URL under which clients reach the edge" }),
  apiKey: Type.String({ description: "Key of the first project" }),
});
