/** Measures requests that the node rewrites: with the value of a secret, beside ones with a header of the rule's own. */

import { Sandbox, Secret } from "e2b";
import type { Bench } from "./bench.ts";
import { type Row, row, summarise } from "./numbers.ts";

const WITHOUT = "api.example";
const WITH = "secret.api.example";
const LIMIT = 1.1;

/** Both kinds take turns in one program, so that the machine's other work falls on both. */
export async function rewritten({ quick, say }: Pick<Bench, "quick" | "say">): Promise<readonly Row[]> {
  say("egress: requests with a secret");
  const name = `bench-${Date.now().toString(36)}`;
  await Secret.create(name, "a value of the bench");
  const header = (value: string) => [{ transform: { headers: { "x-key": value } } }];
  const rules = { [WITHOUT]: header("a value of the bench"), [WITH]: header(Secret.fill(name)) };
  const sandbox = await Sandbox.create({ timeoutMs: 600_000, network: { rules } });
  try {
    const measured = async (program: string) => {
      await sandbox.files.write("/tmp/bench.py", program);
      const { stdout } = await sandbox.commands.run("python3 /tmp/bench.py", { timeoutMs: 300_000 });
      return stdout
        .trim()
        .split("\n")
        .map((line) => line.split(" ").map(Number));
    };
    const count = quick ? 60 : 400;
    const fresh = await measured(program(count, false));
    const kept = await measured(program(count * 2, true));
    return [
      toRow("a connection and a request with a secret", fresh),
      toRow("a request with a secret on a kept connection", kept),
    ];
  } finally {
    await sandbox.kill();
    await Secret.destroy(name);
  }
}

function toRow(name: string, pairs: readonly (readonly number[])[]): Row {
  const [without, with_] = [0, 1].map((index) => summarise(pairs.map((pair) => pair[index] ?? Number.NaN)));
  if (without === undefined || with_ === undefined) throw new Error("no figures");
  const value = with_.p50 / without.p50;
  return row({
    name: `egress, ${name}`,
    unit: "ms",
    ours: with_,
    baseline: { name: "rewritten without", ...without },
    budgets: [{ says: `≤ ${LIMIT} x`, value, limit: LIMIT, better: "less" }],
  });
}

/** Prints a line for each pair: milliseconds without and with a secret. */
function program(count: number, kept: boolean): string {
  return `import http.client, time
def request(host, kept={}):
  started = time.perf_counter()
  c = kept.get(host) or http.client.HTTPSConnection(host, timeout=20)
  c.request("HEAD", "/")
  if c.getresponse().read() or False: raise SystemExit("a body")
  took = (time.perf_counter() - started) * 1000
  if ${kept ? "True" : "False"}: kept[host] = c
  else: c.close()
  return took
hosts = ["${WITHOUT}", "${WITH}"]
for host in hosts: request(host)
for i in range(${count}):
  pair = {host: request(host) for host in (hosts if i % 2 else reversed(hosts))}
  print(*[pair[host] for host in hosts])`;
}
