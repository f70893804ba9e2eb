// Looks for the problems of machine/known/checks.mjs at one moment. Usage: look.mjs machine CHECKOUT PROGRAM… | docker SUBNET NETWORK-NAME | start DATABASE…
// Prints the first that stops the set-up, "what" and "way out" on a line each, with exit status 3; else every warning on a line.
import { problems } from "../../../machine/known/checks.mjs";
import { facts } from "./facts.mjs";

const [when, ...rest] = process.argv.slice(2);
const about = {
  machine: () => ({ checkout: rest[0], programs: rest.slice(1) }),
  docker: () => ({ subnet: rest[0], networkName: rest[1] }),
  start: () => ({ databases: rest }),
}[when]();
const found = problems(when, await facts(when, about));
const [first] = found;
const oneLine = (text) => text.replaceAll("\n", " ");
if (first?.stops) {
  process.stdout.write(
    `${oneLine(`${first.problem}: ${first.evidence}`)}\n${first.wayOut} (check ${first.id} of \`svc doctor\`)\n`,
  );
  process.exitCode = 3;
} else {
  for (const { problem, evidence, wayOut } of found)
    process.stdout.write(`${oneLine(`${problem}: ${evidence} (${wayOut})`)}\n`);
}
