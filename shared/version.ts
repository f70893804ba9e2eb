/** Version and commit of the programs, and the interface version of envd. */

export const VERSION = "0.1.0";

/** The newest step of the orchestrator's database schema. */
export const SCHEMA = "schema-0019";

declare const SVC_COMMIT: string | undefined;

/** The commit that the programs were built from; `source` when they run from their sources. */
export const COMMIT = typeof SVC_COMMIT === "string" ? SVC_COMMIT : "source";

/** The in-sandbox agent's interface version; gates client features. */
export const ENVD_VERSION = "0.6.13";
