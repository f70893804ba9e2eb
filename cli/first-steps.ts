/** `svc --help` and docs/cli.md show these steps to a person who has never used `svc`. A test parses each line as a command. */

export interface Step {
  readonly line: string;
  readonly about: string;
}

export const FIRST_STEPS: readonly Step[] = [
  { line: "svc sandbox create", about: "prints the id of a new sandbox, which ends in 5 minutes" },
  { line: "svc sandbox exec ID -- uname -a", about: "runs a program in it" },
  { line: "svc sandbox connect ID", about: "opens a terminal in it" },
  { line: "svc sandbox pause ID", about: "stores it with its memory; `resume` goes on" },
  { line: "svc sandbox kill ID", about: "ends it" },
];

/** For docs/cli.md: what follows, for people who use the platform and who run it. */
export const LATER_STEPS: readonly (readonly [title: string, steps: readonly Step[]])[] = [
  [
    "Work with it",
    [
      { line: "svc sandbox cp ./app ID:/home/user/app", about: "copies a folder into it" },
      { line: "svc forward ID 8080:80", about: "serves its port 80 at localhost:8080, until Ctrl-C" },
      { line: "svc template build my-app ./app", about: "builds a template from ./app/Dockerfile" },
      {
        line: "svc sandbox create my-app --timeout 2h --auto-pause",
        about: "starts one of it, which is paused at its end",
      },
    ],
  ],
  [
    "Run the platform",
    [
      { line: "svc status", about: "whether it serves, its versions and nodes" },
      { line: "svc explain ID", about: "why a sandbox is in its state, and what ends it" },
      { line: "svc events -f", about: "what happens, as it happens" },
      {
        line: "svc node drain NODE",
        about: "moves its sandboxes away, before work on the machine; `node uncordon` takes it back",
      },
      { line: "svc project create team-blue", about: "prints the id of a project" },
      { line: "svc key create ci --project PROJECT", about: "prints an API key of it" },
    ],
  ],
  [
    "Keep it well (as root, on its machine)",
    [
      {
        line: "svc doctor",
        about: "what is wrong, the cause first, and the way out; `--fix` mends what loses nothing",
      },
      { line: "svc backup /var/backups/svc.tar.gz", about: "records, keys and settings, while it runs" },
      { line: "svc restore --drill /var/backups/svc.tar.gz", about: "tries that backup, and changes nothing" },
      { line: "svc upgrade --check", about: "what an upgrade to this version would do, and in which order" },
      { line: "svc gc --dry-run", about: "what nothing needs any more" },
      { line: "svc debug bundle", about: "an archive without secrets, for a person who helps you" },
    ],
  ],
];
