/** What docs/cli.md and the man pages say of every command of `svc`: its variables and its exit codes. */

interface Variable {
  readonly name?: string;
  /** Of the public SDKs. */
  readonly second?: string;
  readonly about: string;
}

export const VARIABLES: readonly Variable[] = [
  { name: "SVC_API_URL", second: "E2B_API_URL", about: "address of the API" },
  { name: "SVC_SANDBOX_URL", second: "E2B_SANDBOX_URL", about: "one address for all sandboxes" },
  {
    second: "E2B_DOMAIN",
    about: "in place of both: `https://api.DOMAIN`, and `https://PORT-ID.DOMAIN` for sandboxes",
  },
  { name: "SVC_API_KEY", second: "E2B_API_KEY", about: "API key" },
  { name: "SVC_ADMIN_TOKEN", about: "operators' token, for commands about nodes and projects, and for `--project`" },
];

export const EXIT_CODES: readonly (readonly [string, string])[] = [
  ["0", "done"],
  ["1", "failed; also: not ready (`status`), denied (`network check`), nobody reads the output any more"],
  ["2", "the command line or a setting is wrong"],
  ["3", "not found"],
  ["4", "the key or token is missing, or may not do this"],
  ["5", "in conflict with the present state"],
  ["70", "`doctor` itself failed, and says nothing of the machine"],
  ["124", "not done in time"],
  ["129, 130, 143", "ended by the end of its terminal, by Ctrl-C, by SIGTERM"],
];
