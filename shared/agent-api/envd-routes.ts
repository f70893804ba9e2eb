/** Paths of envd that are not RPCs, and who may call them: the one list for envd, which serves them, and for the edge. */

/** `internal`: for the platform alone; the edge refuses it to every visitor. */
export const ENVD_ROUTES = {
  "/health": "public",
  "/metrics": "public",
  "/envs": "public",
  "/files": "public",
  "/files/compose": "public",
  "/init": "internal",
  "/ca-bundle": "internal",
  "/logs": "internal",
  "/watches/suspend": "internal",
  "/watches/resume": "internal",
  "/warm": "internal",
  /** Served by upgrading the connection. */
  "/connect": "internal",
} as const satisfies Readonly<Record<`/${string}`, "public" | "internal">>;

export type EnvdPath = keyof typeof ENVD_ROUTES;

/** First path segments that the wire contract reserves, whether this envd serves them or not. */
const RESERVED = ["collapse", "freeze", "fsfreeze", "fsthaw", "init", "unfreeze", "upgrade"];

/** First path segments for the platform alone: nothing below them is public either. */
export const INTERNAL_SEGMENTS: ReadonlySet<string> = new Set([
  ...RESERVED,
  ...Object.entries(ENVD_ROUTES)
    .filter(([, who]) => who === "internal")
    .map(([path]) => path.split("/")[1] ?? ""),
]);
