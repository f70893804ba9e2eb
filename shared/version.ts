/** What the programs call themselves. */

export const VERSION = "0.1.0";

/** The in-sandbox agent's interface version; gates client features (wire-contract.md §3.0). */
export const ENVD_VERSION = "0.6.13";
