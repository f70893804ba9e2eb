// A first sandbox, with the public SDK: creates it, runs a program, prints the program's output, kills it.
// Reads E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY; exit status 1 when anything fails.
import { Sandbox } from "e2b";

const program =
  'import os, platform; print("Hello from", platform.node(), "as", os.environ["USER"], "on Python", platform.python_version())';

const started = performance.now();
const sandbox = await Sandbox.create({ timeoutMs: 60_000 });
try {
  const result = await sandbox.commands.run(`python3 -c '${program}'`);
  const elapsed = Math.round(performance.now() - started);
  process.stdout.write(`${sandbox.sandboxId} started and ran this in ${elapsed} ms:\n`);
  process.stdout.write(`$ python3 -c '${program}'\n${result.stdout}`);
} finally {
  await sandbox.kill();
}
