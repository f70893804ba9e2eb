/** A real registry, from Debian's packages, behind basic auth on this machine, for as long as a test lasts. */

import { spawn } from "node:child_process";
import { access, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../peers/listening.ts";
import { run } from "../platform/programs.ts";
import { until } from "../runner/until.ts";

/** `scripts/host/test/registry` installs the program there. */
const PROGRAM = "/opt/svc/test/docker-registry";

interface DebianRegistry {
  /** host:port, which Docker accepts without TLS because the address is this machine's. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
  /** Pushes an image of this machine's Docker daemon and resolves to its name in the registry. */
  push(image: string, path: string): Promise<string>;
  close(): Promise<void>;
}

export async function debianRegistry(): Promise<DebianRegistry> {
  await access(PROGRAM).catch(() => {
    throw new Error(`${PROGRAM} is missing: run scripts/host/test/registry`);
  });
  const directory = await mkdtemp(join(tmpdir(), "svc-registry-"));
  const host = `127.0.0.1:${await freePort()}`;
  const [username, password] = ["someone", "a-password-nobody-else-has"];
  // The registry knows only bcrypt. The C library makes the hash, and perl is the one program on every machine that calls
  // it.
  const hash = await run("perl", ["-e", "print crypt($ARGV[0], $ARGV[1])", password, "$2y$05$abcdefghijklmnopqrstuu"]);
  await writeFile(join(directory, "passwords"), `${username}:${hash}\n`);
  const settings = {
    version: "0.1",
    storage: { filesystem: { rootdirectory: join(directory, "images") } },
    http: { addr: host },
    auth: { htpasswd: { realm: "test", path: join(directory, "passwords") } },
  };
  // The registry reads YAML, and JSON is YAML.
  await writeFile(join(directory, "settings.yml"), JSON.stringify(settings));
  const server = spawn(PROGRAM, ["serve", join(directory, "settings.yml")], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  server.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-4_000);
  });
  const ended = new Promise<void>((resolve) => {
    server.once("exit", () => resolve());
  });
  const status = () =>
    fetch(`http://${host}/v2/`).then(
      (response) => response.status,
      () => 0,
    );
  const close = async () => {
    server.kill();
    await ended;
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await until(async () => (await status()) === 401, {
      what: `the registry (${said})`,
      timeoutMs: 60_000,
      everyMs: 100,
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    host,
    username,
    password,
    async push(image, path) {
      const name = `${host}/${path}`;
      const auth = Buffer.from(`${username}:${password}`).toString("base64");
      await writeFile(join(directory, "config.json"), JSON.stringify({ auths: { [host]: { auth } } }));
      await run("docker", ["tag", image, name]);
      try {
        await run("docker", ["--config", directory, "push", name]);
      } finally {
        await run("docker", ["rmi", name]);
      }
      return name;
    },
    close,
  };
}
