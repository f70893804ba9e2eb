// A client's program, with nothing but its environment: makes a volume, writes, mounts and reads it with the published SDK.
// Prints as JSON what it read, what failed, and every host that the process opened a connection to.
// Usage: recorded-volume.mjs [--mount]
import { Socket } from "node:net";
import process from "node:process";
import { Sandbox, Volume } from "e2b";

const hosts = new Set();
const connect = Reflect.get(Socket.prototype, "connect");
Socket.prototype.connect = function record(...given) {
  const [first] = given.flat();
  const options = typeof first === "object" && first !== null ? first : { port: first, host: given[1] };
  hosts.add(options.path ?? `${options.host ?? "localhost"}:${options.port}`);
  return connect.apply(this, given);
};

const volume = await Volume.create(`recorded-${process.pid}`);
const report = { read: undefined, mounted: undefined, error: undefined };
try {
  await volume.writeFile("/note", "stays at home");
  report.read = await volume.readFile("/note");
  if (process.argv.includes("--mount")) {
    const sandbox = await Sandbox.create({ timeoutMs: 60_000, volumeMounts: { "/data": volume } });
    try {
      report.mounted = (await sandbox.commands.run("cat /data/note")).stdout;
    } finally {
      await sandbox.kill();
    }
  }
} catch (error) {
  report.error = `${error.message} ${error.cause?.message ?? ""}`.trim();
} finally {
  await Volume.destroy(volume.volumeId);
}
process.stdout.write(`${JSON.stringify({ ...report, hosts: [...hosts].sort((a, b) => a.localeCompare(b)) })}\n`);
process.exit();
