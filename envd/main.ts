/** envd, the agent inside a sandbox: reads its settings, starts, ends at a signal. */

import "./runtime/small-builtins.ts";
import { dirname, join } from "node:path";
import { startEnvd } from "./app.ts";

const DEFAULT_PORT = 49_983;

const { SVC_ENVD_CONTROL, SVC_ENVD_PORT, PATH, LANG } = process.env;
// Programs that envd starts must not inherit the control token.
delete process.env["SVC_ENVD_CONTROL"];

const config = {
  port: SVC_ENVD_PORT === undefined || SVC_ENVD_PORT === "" ? DEFAULT_PORT : Number(SVC_ENVD_PORT),
  controlToken: SVC_ENVD_CONTROL === undefined || SVC_ENVD_CONTROL === "" ? undefined : SVC_ENVD_CONTROL,
  path: PATH,
  language: LANG,
  helper: join(dirname(process.argv[1] ?? ""), "svc-exec"),
  root: "/",
  now: Date.now,
};

// A fault in one request must not end the sandbox; the platform reads it in the container's log.
process.on("uncaughtException", (error) =>
  console.error(JSON.stringify({ level: "error", message: "uncaught exception", error: error.stack })),
);
process.on("unhandledRejection", (reason) =>
  console.error(
    JSON.stringify({
      level: "error",
      message: "unhandled rejection",
      error: reason instanceof Error ? reason.stack : "unknown",
    }),
  ),
);

startEnvd(config).then(
  (envd) => {
    const stop = () => void envd.stop().finally(() => process.exit(0));
    process.once("SIGTERM", stop);
    process.once("SIGINT", stop);
  },
  (error: unknown) => {
    console.error(
      JSON.stringify({
        level: "fatal",
        message: "envd cannot start",
        error: error instanceof Error ? error.message : "unknown",
      }),
    );
    process.exit(1);
  },
);
