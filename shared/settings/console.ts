/** Settings of the web console. */

import { Type } from "typebox";

export const consoleSettings = {
  console: Type.Enum(["on", "off"], {
    default: "on",
    description: "Whether the platform API serves the web console at /console",
  }),
  consoleListen: Type.Optional(
    Type.String({
      maxLength: 261,
      pattern: "^(\\[[0-9a-fA-F:.]+\\]|[^:\\s]+):\\d{1,5}$",
      description:
        "Address and port at which the console alone listens, as 127.0.0.1:3005 or [::]:3005; default: on the port of the platform API",
    }),
  ),
  consoleHosts: Type.String({
    default: "",
    maxLength: 4096,
    pattern: "^[A-Za-z0-9.,: _-]*$",
    description:
      "Host names at which the console answers, comma-separated, beside localhost, addresses and the one of SVC_PUBLIC_URL",
  }),
};
