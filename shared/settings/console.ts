/** Settings of the web console. */

import { Type } from "typebox";

export const consoleSettings = {
  console: Type.Enum(["on", "off"], {
    default: "on",
    description: "Whether the platform API serves the web console at /console",
  }),
  consoleHosts: Type.String({
    default: "",
    maxLength: 4096,
    pattern: "^[A-Za-z0-9.,: _-]*$",
    description:
      "Host names at which the console answers, comma-separated, beside localhost, addresses and the one of SVC_PUBLIC_URL",
  }),
};
