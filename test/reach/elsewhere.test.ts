/**
 * A platform with a domain of its own, from another machine: the published SDK's programs with the domain, a key and the authority's
 * certificate, and nothing else. Needs `SVC_INSTANCE=reach ./scripts/up --domain sbx.svc.test:8443`, as root.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { issueForSite } from "../../shared/tls/site/own-authority.ts";
import { checkout, openPlatform, type Platform, readEnvFile } from "../support/platform/platform.ts";
import { type Elsewhere, HERE, makeElsewhere } from "./network.ts";

let platform: Platform;
let elsewhere: Elsewhere;
let domain = "";
let folder = "";
beforeAll(async () => {
  platform = openPlatform("reach");
  domain = readEnvFile(`${platform.paths.etc}/fleet.env`).get("SVC_DOMAIN") ?? "";
  elsewhere = await makeElsewhere(domain.replace(/:\d+$/, ""));
  folder = mkdtempSync(join(tmpdir(), "svc-elsewhere-"));
});
afterAll(async () => {
  await elsewhere.remove();
  rmSync(folder, { recursive: true, force: true });
});

const site = (name: string) => join(platform.paths.etc, "site", name);
const client = () => ({
  HOME: folder,
  E2B_DOMAIN: domain,
  E2B_API_KEY: platform.apiKey.replace(/^svc_/, "e2b_"),
  NODE_EXTRA_CA_CERTS: site("authority.pem"),
});

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly onOutput?: (output: string) => void;
}

async function runThere(words: readonly string[], { env = {}, input, onOutput }: Given = {}) {
  const [program, args] = elsewhere.inside({ ...client(), ...env }, words);
  const child = spawn(program, args, { cwd: checkout });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.end(input);
  child.stdout.on("data", (data: Buffer) => onOutput?.(data.toString()));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number | null, stdout, stderr };
}

/** The serial number of the certificate that a new connection is shown. */
async function shown(): Promise<string> {
  const port = Number(domain.split(":")[1] ?? 443);
  const name = domain.replace(/:\d+$/, "");
  const socket = connect({ host: HERE, port, servername: `api.${name}`, ca: readFileSync(site("authority.pem")) });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

async function renew(): Promise<void> {
  const authority = {
    certificate: readFileSync(site("authority.pem"), "utf8"),
    key: readFileSync(site("authority.key"), "utf8"),
  };
  const { certificate, key } = await issueForSite(authority, domain, Date.now());
  // In place, so that the key stays its owner's.
  writeFileSync(site("key.pem"), key);
  writeFileSync(site("cert.pem.new"), certificate, { mode: 0o644 });
  renameSync(site("cert.pem.new"), site("cert.pem"));
}

test("the SDK's programs pass, with the certificate changed in their middle", async () => {
  const before = await shown();
  let renewed: Promise<void> | undefined;
  const vitest = join(checkout, "node_modules/vitest/vitest.mjs");
  const words = [process.execPath, vitest, "run", "--config", "test/reach/programs.config.ts"];
  const { code, stdout, stderr } = await runThere(words, {
    env: { SVC_TEST_DOMAIN: domain, SVC_INSTANCE: platform.instance },
    onOutput: (output) => {
      // The first file is over.
      if (output.includes("✓")) renewed ??= renew();
    },
  });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  await renewed;
  await expect.poll(shown).not.toBe(before);
}, 1_200_000);

const answer = (status: number, version: string) => `${status} ${version}`;
const curl = (url: string, ...more: readonly string[]) =>
  runThere([
    "curl",
    "-sS",
    "--cacert",
    site("authority.pem"),
    "-o",
    "/dev/null",
    "-w",
    "%{http_code} %{http_version}",
    ...more,
    url,
  ]);

test("API and console answer at one port, by HTTP/1.1 and by HTTP/2", async () => {
  const api = `https://api.${domain}`;
  expect((await curl(`${api}/health`, "--http1.1")).stdout).toBe(answer(204, "1.1"));
  expect((await curl(`${api}/health`, "--http2")).stdout).toBe(answer(204, "2"));
  expect((await curl(`${api}/console/`, "--http2")).stdout).toBe(answer(200, "2"));
  expect((await curl(`https://sandbox.${domain}/`, "--http2")).stdout).toBe(answer(400, "2"));
});

test("without the authority's certificate a client refuses the platform", async () => {
  const { code } = await runThere(["curl", "-sS", `https://api.${domain}/health`]);
  // curl's number for a certificate that it cannot trust.
  expect(code).toBe(60);
});

test("the command works with the domain and a key", async () => {
  const svc = [process.execPath, join(checkout, "node_modules/tsx/dist/cli.mjs"), join(checkout, "cli/main.ts")];
  const logged = await runThere([...svc, "auth", "login", "--domain", domain], { input: platform.apiKey });
  expect(logged.code, logged.stderr).toBe(0);
  const env = { E2B_DOMAIN: "", E2B_API_KEY: "" };
  const created = await runThere([...svc, "sandbox", "create", "base"], { env });
  expect(created.code, created.stderr).toBe(0);
  const id = created.stdout.trim();
  const ran = await runThere([...svc, "sandbox", "exec", id, "--", "echo", "here"], { env });
  await runThere([...svc, "sandbox", "kill", id], { env });
  expect([ran.code, ran.stdout]).toEqual([0, "here\n"]);
});
