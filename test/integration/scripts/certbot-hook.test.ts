/** certbot's deploy hook: the certificate that it leaves is the one that a program reads, as a whole, and no other. */

import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createLog } from "../../../shared/program/log.ts";
import { openSite } from "../../../shared/tls/site/files.ts";
import { issueForSite, makeSiteAuthority } from "../../../shared/tls/site/own-authority.ts";
import type { CertificateWithKey } from "../../../shared/tls/x509.ts";

const scripts = join(import.meta.dirname, "../../../scripts");
const DOMAIN = "sbx.example.org";
const SLOW = { timeout: 60_000 };

let authority: CertificateWithKey;
let home: string;
beforeAll(async () => {
  authority = await makeSiteAuthority(DOMAIN, Date.now());
  home = mkdtempSync(join(tmpdir(), "svc-certbot-"));
  mkdirSync(join(home, "scripts"));
  cpSync(join(scripts, "lib"), join(home, "scripts/lib"), { recursive: true });
  cpSync(join(scripts, "certbot-hook"), join(home, "scripts/certbot-hook"));
  mkdirSync(join(home, "etc"));
  const replaced = (path: string, from: RegExp, to: string) =>
    writeFileSync(path, readFileSync(path, "utf8").replace(from, to));
  replaced(join(home, "scripts/lib/instance.sh"), /^CONFIG_DIR=.*$/m, `CONFIG_DIR=${home}/etc`);
  // In the place of the programs' own user, which a machine without the platform lacks.
  replaced(join(home, "scripts/lib/instance.sh"), /^SERVICE_USER=.*$/m, "SERVICE_USER=daemon");
});
afterAll(() => rmSync(home, { recursive: true }));

const certFile = () => join(home, "etc/tls/fullchain.pem");
const keyFile = () => join(home, "etc/tls/privkey.pem");

function machineHas(settings: readonly string[], runs = false): void {
  writeFileSync(join(home, "etc/config.env"), settings.map((line) => `${line}\n`).join(""));
  const library = join(home, "scripts/lib/services.sh");
  const [text] = readFileSync(library, "utf8").split("# of this test\n");
  writeFileSync(library, `${text ?? ""}# of this test\nservice_runs() { ${String(runs)}; }\n`);
}

const SETTINGS = () => [
  `SVC_DOMAIN="${DOMAIN}"`,
  `SVC_TLS_CERT_FILE="${certFile()}"`,
  `SVC_TLS_KEY_FILE="${keyFile()}"`,
];

/** What certbot has after an issue. */
async function lineage(): Promise<CertificateWithKey & { readonly path: string }> {
  const pair = await issueForSite(authority, DOMAIN, Date.now());
  const path = mkdtempSync(join(home, "lineage-"));
  writeFileSync(join(path, "fullchain.pem"), pair.certificate);
  writeFileSync(join(path, "privkey.pem"), pair.key, { mode: 0o600 });
  return { ...pair, path };
}

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function hook(path: string, domains = `api.${DOMAIN} *.${DOMAIN}`): Promise<Ended> {
  const env = { ...process.env, SVC_INSTANCE: "", RENEWED_LINEAGE: path, RENEWED_DOMAINS: domains };
  return new Promise((resolve) => {
    execFile(join(home, "scripts/certbot-hook"), { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

test(
  "key and chain are put in place for the program's user, and a program that runs takes them as a whole",
  SLOW,
  async () => {
    machineHas(SETTINGS());
    const first = await lineage();
    expect(await hook(first.path)).toMatchObject({ code: 0, stdout: expect.stringContaining("does not run") });
    expect([statSync(keyFile()).mode & 0o777, statSync(certFile()).mode & 0o777]).toEqual([0o400, 0o444]);
    expect(statSync(keyFile()).uid).toBeGreaterThan(0);

    const warnings: string[] = [];
    const log = createLog({ component: "test", destination: { write: (line) => warnings.push(line) } });
    const files = { certFile: certFile(), keyFile: keyFile(), domain: DOMAIN };
    const site = await openSite({ ...files, now: Date.now, log, lookEveryMs: 300 });
    onTestFinished(() => site.stop());
    const server: Server = createServer({ cert: site.current.certificate, key: site.current.key });
    site.onReplaced(({ certificate, key }) => server.setSecureContext({ cert: certificate, key }));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    machineHas([...SETTINGS(), `SVC_TLS_PORT="${(server.address() as AddressInfo).port}"`], true);

    const second = await lineage();
    const renewed = await hook(second.path);
    expect(renewed, renewed.stderr).toMatchObject({
      code: 0,
      stdout: `svc: clients see the new certificate of ${DOMAIN}\n`,
    });
    expect(site.current).toMatchObject({ certificate: second.certificate, key: second.key });
    expect(warnings.filter((line) => line.includes("kept the former"))).toEqual([]);
  },
);

test("a machine whose settings come with the next up gets its first certificate before that", async () => {
  machineHas([]);
  rmSync(join(home, "etc/tls"), { recursive: true, force: true });
  mkdirSync(join(home, ".svc"));
  onTestFinished(() => rmSync(join(home, ".svc"), { recursive: true }));
  writeFileSync(join(home, ".svc/config.env"), SETTINGS().join("\n"));
  const { path, certificate } = await lineage();
  expect((await hook(path)).code).toBe(0);
  expect(readFileSync(certFile(), "utf8")).toBe(certificate);
});

test("a certificate for other names is left alone, and that is no failure", async () => {
  machineHas(SETTINGS());
  rmSync(join(home, "etc/tls"), { recursive: true, force: true });
  const other = await lineage();
  const said = await hook(other.path, "www.example.org");
  expect(said).toMatchObject({ code: 0, stdout: expect.stringContaining(`not for *.${DOMAIN}`) });
  machineHas([]);
  expect(await hook(other.path)).toMatchObject({ code: 0, stdout: expect.stringContaining("SVC_DOMAIN is not set") });
  expect(existsSync(certFile())).toBe(false);
});

test.each([
  ["no files for it", () => [`SVC_DOMAIN="${DOMAIN}"`], "SVC_TLS_CERT_FILE and SVC_TLS_KEY_FILE are not set"],
  [
    "a certificate of its own authority",
    () => [
      `SVC_DOMAIN="${DOMAIN}"`,
      `SVC_TLS_CERT_FILE="${home}/etc/site/cert.pem"`,
      `SVC_TLS_KEY_FILE="${keyFile()}"`,
    ],
    "the platform makes its own certificate",
  ],
])("a machine with %s gets none, and the hook says what to set", async (_what, settings, reason) => {
  machineHas(settings());
  const { path } = await lineage();
  expect(await hook(path)).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
});
