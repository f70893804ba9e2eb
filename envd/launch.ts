/** How envd is started inside any image: the one place that knows. The build writes it to launch.json for the agent. */

/** Memory and start-up were measured with these; see README.md. */
const nodeFlags = ["--v8-pool-size=0", "--max-semi-space-size=1", "--max-old-space-size=256"];

/** After `/svc/tini --`. Paths are those of the runtime directory, mounted read-only at /svc. */
export const launchArgs: readonly string[] = [
  "/svc/lib/loader",
  "--library-path",
  "/svc/lib",
  "/svc/node",
  ...nodeFlags,
  "/svc/envd/envd.js",
];
