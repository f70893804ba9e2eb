/** The command line of envd in any image. The build writes it to launch.json for the agent. */

/**
 * Measured, see README.md: no V8 threads and nothing prepared for them, a small young generation, no second compiler (its code costs a megabyte);
 * compiled code is kept while the sandbox idles; the heap is collected by POST /warm and by idle-memory.ts.
 */
const nodeFlags = [
  "--v8-pool-size=0",
  "--single-threaded",
  "--max-semi-space-size=1",
  "--max-old-space-size=256",
  "--no-sparkplug",
  "--no-flush-bytecode",
  "--no-memory-reducer",
  "--expose-gc",
];

/** After `/svc/tini --`. Paths are those of the runtime directory, mounted read-only at /svc. */
export const launchArgs: readonly string[] = [
  "/svc/lib/loader",
  "--library-path",
  "/svc/lib",
  "/svc/node",
  ...nodeFlags,
  "/svc/envd/envd.js",
];
