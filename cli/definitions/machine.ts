/** Commands for the machine that runs the platform: they look at the machine itself, as root, and also when no program answers. */

import type { Command } from "../definition.ts";

const rotate = () => import("../commands/machine/rotate.ts");

export const machineCommands: readonly Command[] = [
  {
    name: "doctor",
    about: "find out what is wrong with the platform on this machine, and how to mend it",
    more: "For root, on the machine itself; it works while the programs are down. Failures come first, the cause before its effects. Exit code 1: something has failed; warnings do not count. 70: the look itself failed.",
    options: [
      {
        flags: "--fix",
        about: "mends what can be mended without any loss: access to files, forwarding, kernel modules",
      },
      {
        flags: "--preflight",
        about:
          "only what would leave an upgrade in the middle, in seconds; the package asks it before it replaces anything",
      },
      { flags: "--json", about: "the whole report, with the checks that passed" },
      { flags: "-o, --output <form>", about: "the same in this form", choices: ["json", "yaml"] },
      { flags: "--all", about: "shows the checks that passed, too" },
    ],
    example: "svc doctor --fix",
    load: async () => (await import("../commands/machine/doctor.ts")).doctor,
  },
  {
    name: "debug bundle",
    about: "collect state, logs, metrics and doctor's report in one archive, without secrets",
    more: "For root, on the machine itself. A part that fails or takes too long is left out, and the archive says why. It is for its owner alone (0600).",
    options: [
      { flags: "--since <duration>", about: "logs from that time before now on (1h)", read: "duration" },
      { flags: "--file <path>", about: "where the archive is written (svc-debug-TIME.tar.gz)" },
    ],
    example: "svc debug bundle --since 2h --file ./svc-debug.tar.gz",
    load: async () => (await import("../commands/machine/bundle.ts")).bundle,
  },
  {
    name: "backup",
    about: "write the records of the platform, its keys, certificates and settings into one archive, while it runs",
    more: "For root, on the orchestrator's machine. The archive is for its owner alone (0600) and has a checksum of each file. Memory, disks, images and volumes of nodes are not in it. A file that is there is not replaced; Ctrl-C leaves nothing behind.",
    arguments: [{ name: "[file]", about: "where it is written (svc-backup-TIME.tar.gz)" }],
    example: "svc backup /var/backups/svc.tar.gz",
    load: async () => (await import("../commands/machine/backup.ts")).backup,
  },
  {
    name: "restore",
    about: "put a backup back on a machine whose orchestrator is stopped, or try one",
    more: "For root. What is there is put aside, not deleted. With --drill nothing of the machine changes: an orchestrator starts on a copy, in a network without a way out, and what differs from the backup is reported (exit code 1).",
    arguments: [{ name: "<file>", about: "of `svc backup`" }],
    options: [
      { flags: "--drill", about: "only tries it" },
      {
        flags: "--force",
        about: "replaces settings and keys that are other ones, and the records of a PostgreSQL database",
      },
    ],
    example: "svc restore --drill /var/backups/svc.tar.gz",
    load: async () => (await import("../commands/machine/backup.ts")).restore,
  },
  {
    name: "migrate sqlite-to-postgres",
    about: "move the records of the platform from SQLite into an empty PostgreSQL database",
    more: "For root, on the orchestrator's machine, while the orchestrator is stopped; sandboxes run on. The URL comes from standard input or a file. All records arrive in one transaction, the count of every table and the audit log are compared, and the SQLite file stays as it is. A database that holds records of anything else is refused. A run that was cut can be repeated.",
    options: [{ flags: "--file <path>", about: "reads the postgresql:// URL from a file, in place of standard input" }],
    example: "svc migrate sqlite-to-postgres --file ./database-url",
    load: async () => (await import("../commands/machine/migrate.ts")).sqliteToPostgres,
  },
  {
    name: "rotate keys",
    about: "replace a token, a seed or a key while sandboxes run",
    more: "For root, on the orchestrator's machine. The earlier one stays valid beside the new one. The command says what restarts before it begins; a run that was cut is repeated, and goes on where it was.",
    arguments: [
      {
        name: "<key>",
        about: "admin-token, api-key, node-key, metrics-token, sandbox-seed, encryption-key, seal-key or identity-key",
      },
    ],
    options: [
      { flags: "--finish", about: "ends the earlier one; refused while something uses it" },
      {
        flags: "--overlap <duration>",
        about: "how long the earlier admin token or API key stays valid (1h)",
        read: "duration",
      },
    ],
    example: "svc rotate keys node-key --finish",
    load: async () => (await rotate()).keys,
  },
  {
    name: "rotate ca",
    about: "replace the authority of the certificates between orchestrators, nodes and edges, while everything runs",
    more: "With the operators' token. First all machines trust both authorities, then the new one signs, and when every node and edge has a certificate of it the former one is dropped: some minutes, and no machine is out of reach. It goes on by itself when the command ends; the same command follows it again.",
    options: [{ flags: "-d, --detach", about: "does not wait for the end" }],
    shows: "one",
    example: "svc rotate ca --detach",
    load: async () => (await import("../commands/operating/authority.ts")).replaceAuthority,
  },
  {
    name: "rotate secrets",
    about: "replace the key that the projects' secrets are encrypted with",
    more: "For root, on the orchestrator's machine. All data keys are encrypted anew, then the earlier key is removed; sandboxes notice nothing. A run that was cut is repeated.",
    example: "svc rotate secrets",
    load: async () => (await rotate()).secrets,
  },
  {
    name: "rotate status",
    about: "show which earlier tokens, seeds and keys are still in use",
    more: "For root, on the orchestrator's machine.",
    example: "svc rotate status",
    load: async () => (await rotate()).status,
  },
];
