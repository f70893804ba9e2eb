/** The program inside the namespace: every server, and their control over a unix socket. It ends when its input ends. */

import { createServer } from "node:http";
import { certificates } from "./certificates.ts";
import { names, serveNames } from "./names.ts";
import { ADDRESS, internetPlan, ZONES, type Zone } from "./plan.ts";
import { records } from "./records.ts";
import { socksServer } from "./socks.ts";
import { serveDatagrams, serveStreams } from "./streams.ts";
import { serveWeb } from "./web.ts";

const plan = internetPlan(process.argv[2] ?? "");
const seen = records();
const zones = names(ZONES, seen);
const socks = {
  open: socksServer({ address: ADDRESS.socks, withPassword: false, names: zones, records: seen }),
  password: socksServer({ address: ADDRESS.socksWithPassword, withPassword: true, names: zones, records: seen }),
};

process.stdin.on("end", () => process.exit(0)).resume();
// One malformed packet must not end the internet for all tests.
process.on("uncaughtException", (error) => process.stderr.write(`test internet: ${error.stack ?? error.message}\n`));

await serveNames(zones, ADDRESS.dns, seen);
await serveNames(zones, ADDRESS.otherDns, seen);
await serveWeb(await certificates(plan.authorityDirectory), seen);
await serveStreams(seen);
await serveDatagrams(zones, seen);
await Promise.all([socks.open.start(), socks.password.start()]);

const verbs: Readonly<Record<string, (body: never) => unknown>> = {
  "/records": ({ position }: { position: number }) => seen.since(position),
  "/zone": ({ name, zone }: { name: string; zone: Zone }) => zones.set(name, zone),
  "/socks/kill": () => Promise.all([socks.open.kill(), socks.password.kill()]),
  "/socks/start": () => Promise.all([socks.open.start(), socks.password.start()]),
};

const control = createServer((request, response) => {
  const answer = async () => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const value = await verbs[request.url ?? ""]?.(JSON.parse(Buffer.concat(chunks).toString("utf8")) as never);
    response.end(JSON.stringify(value ?? {}));
  };
  answer().catch((error: unknown) => {
    response.writeHead(500).end(String(error));
  });
});
control.listen(plan.socket, () => process.stdout.write("ready\n"));
