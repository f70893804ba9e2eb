/** Writes docs/cli.md from the definitions of the commands; `--check` only compares, and fails if the page is stale. */

import { readFile, writeFile } from "node:fs/promises";
import type { Argument, Command, Group, Option } from "../../cli/definition.ts";
import { COMMANDS, GROUPS } from "../../cli/definitions/all.ts";
import { PROJECT } from "../../cli/definitions/sandboxes.ts";
import { FIRST_STEPS, LATER_STEPS, type Step } from "../../cli/first-steps.ts";
import { COMMON, shownOptions } from "../../cli/program.ts";
import { EXIT_CODES, VARIABLES } from "../lib/programs/cli-words.ts";

const file = new URL("../../docs/cli.md", import.meta.url);

const HEAD = `# The command svc

<!-- scripts/pages/cli-page.ts writes this page from cli/definitions: npm run cli-page -->

\`./scripts/svc\` in a checkout is the command for people who use the platform and who run it. After \`./scripts/up\` it works on that machine
without any setting; root's commands there are \`sudo ./scripts/svc …\`. The examples write \`svc\`, as the package has it. [How settings, output and exit codes work](#settings), then each command with an example.
\`svc COMMAND --help\` shows the same; \`npm run man-pages\` writes it as manual pages (\`man -l dist/man/svc.1\`). Sandboxes, nodes
and projects are named by their ids, the rest by name or id.

## First steps

${stepsOf(FIRST_STEPS)}

${LATER_STEPS.map(([title, steps]) => `${title}:\n\n${stepsOf(steps)}`).join("\n\n")}

## Settings

| variable | second name | what it is |
|---|---|---|
${VARIABLES.map(({ name, second, about }) => `|${[name, second].map((one) => (one === undefined ? " " : ` \`${one}\` `)).join("|")}| ${about} |`).join("\n")}

What is missing there comes from the current context (\`svc context add\`), and without one from the \`.svc/env\` of the checkout. Root on that
machine has the operators' token of \`/etc/svc/admin-token\` for the checkout's platform, also where a variable or a context names its address. \`SVC_INSTANCE\` names another platform of the machine; sudo drops it, so it
stands behind: \`sudo env SVC_INSTANCE=b svc …\`. Where a variable names the API or the domain, no stored key is used: a key goes only to the address that it is stored with. \`--context\` counts more than variables.
\`svc auth whoami\` shows what is used, and whether it works. \`NODE_EXTRA_CA_CERTS=FILE\` names authorities that the machine does not know, and
\`NODE_USE_ENV_PROXY=1\` leads calls through the proxies of \`https_proxy\` and \`http_proxy\`, except to the hosts of \`no_proxy\` (not those of \`forward\`).

## Output

Data goes to standard output, everything else to standard error. Lists are tables; \`-o wide\` has more columns, \`-o name\` only names,
which are arguments as well (\`svc node cordon node/n1\`),
\`-o json\` and \`-o yaml\` all that the API says, \`--no-headers\` leaves the titles out, and \`--watch\` goes on with what changes. States have
colours on a terminal, unless \`NO_COLOR\` is set. What comes from the platform and out of sandboxes is shown with its control characters
escaped; only \`sandbox connect\` and \`sandbox exec\` pass bytes through.

| exit code | meaning |
|---|---|
${EXIT_CODES.map(([code, meaning]) => `| ${code} | ${meaning} |`).join("\n")}

\`sandbox exec\` and \`sandbox connect\` have the exit code of the program; 128 and the number of the signal that ended it.

Every command takes these options, and \`--help\`:

${table(COMMON)}

Where a command says so, it takes these, too:

${table([...shownOptions({ shows: "list" }), PROJECT])}
`;

function stepsOf(steps: readonly Step[]): string {
  return ["| | |", "|---|---|", ...steps.map(({ line, about }) => `| \`${line}\` | ${about} |`)].join("\n");
}

function table(options: readonly Option[], args: readonly Argument[] = []): string {
  const rows = [
    ...args.map(({ name, about }) => `| \`${name}\` | ${cell(about)} |`),
    ...options.map(({ flags, about, choices }) => {
      const values = choices === undefined ? "" : ` (${choices.map((choice) => `\`${choice}\``).join(", ")})`;
      return `| \`${flags}\` | ${cell(about)}${values} |`;
    }),
  ];
  return ["| | |", "|---|---|", ...rows].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

/** The options that many commands have, which the beginning of the page tells of. */
function isShared(command: Command, { flags }: Option): boolean {
  return flags.startsWith("--project ") || shownOptions(command).some((option) => option.flags === flags);
}

function section(command: Command): string {
  const words = (command.arguments ?? []).map(({ name }) => ` ${name}`).join("");
  const about = command.about.charAt(0).toUpperCase() + command.about.slice(1);
  const all = [...(command.options ?? []), ...shownOptions(command)];
  const own = all.filter((option) => !isShared(command, option));
  const shared = all
    .filter((option) => isShared(command, option))
    .map(({ flags }) => `\`${flags.split(" ")[0]?.replace(",", "")}\``);
  const more = [command.more, shared.length === 0 ? undefined : `Takes ${shared.join(", ")}.`].filter(Boolean);
  const parts = [
    `### ${command.name}${words.replaceAll("<", "&lt;").replaceAll(">", "&gt;")}`,
    [`${cell(about)}.`, ...more].join(" "),
    `\`\`\`sh\n${command.example}\n\`\`\``,
  ];
  const args = command.arguments ?? [];
  if (own.length + args.length > 0) parts.push(table(own, args));
  return parts.join("\n\n");
}

function page(commands: readonly Command[], groups: readonly Group[]): string {
  const shown = commands.filter(({ hidden }) => hidden !== true);
  const inGroups = groups.map(({ name, about }) => {
    const own = shown.filter((command) => command.name.startsWith(`${name} `));
    return [`## svc ${name}`, `${about.charAt(0).toUpperCase()}${about.slice(1)}.`, ...own.map(section)].join("\n\n");
  });
  const alone = shown.filter(({ name }) => !name.includes(" "));
  return `${[HEAD.trimEnd(), ...inGroups, "## Commands without a group", ...alone.map(section)].join("\n\n")}\n`;
}

const wanted = page(COMMANDS, GROUPS);
if (!process.argv.includes("--check")) {
  await writeFile(file, wanted);
} else if ((await readFile(file, "utf8").catch(() => "")) !== wanted) {
  process.stderr.write("docs/cli.md is stale: npm run cli-page\n");
  process.exitCode = 1;
}
