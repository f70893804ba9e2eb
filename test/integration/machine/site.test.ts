/** What the doctor says of the platform's domain: the program's words about its certificate, and a look at the names as a client has it. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { readInstance } from "../../../machine/base/instance.ts";
import { thisMachine } from "../../../machine/base/this-machine.ts";
import { ALL_CHECKS } from "../../../machine/checks/all.ts";
import { judge } from "../../../machine/checks/judge.ts";
import { saidInJson } from "../../../machine/evidence/programs/programs.ts";
import { lookAtSite } from "../../../machine/evidence/site.ts";
import { problemsOf, type SitePair, stateOf, unusable } from "../../../shared/tls/site/certificate.ts";
import { issueForSite, makeSiteAuthority } from "../../../shared/tls/site/own-authority.ts";
import { program } from "../../support/machine/changes.ts";
import { healthy } from "../../support/machine/healthy.ts";
import { freePort } from "../../support/peers/listening.ts";

const DOMAIN = "sbx.svc.test";
const FILES = { certFile: "/etc/svc/cert.pem", keyFile: "/etc/svc/key.pem" };
let pair: SitePair;
let other: SitePair;
beforeAll(async () => {
  const issue = async (domain: string) => issueForSite(await makeSiteAuthority(domain, Date.now()), domain, Date.now());
  pair = await issue(DOMAIN);
  other = await issue("other.test");
});

/** A port with TLS that shows this certificate. */
async function shows({ certificate: cert, key }: SitePair): Promise<number> {
  const server = createServer({ cert, key }, (socket) => socket.on("error", () => undefined));
  server.on("tlsClientError", () => undefined);
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** A look at a machine with this domain. */
function looked(domain: string, resolve = () => Promise.resolve({ address: "127.0.0.1" })) {
  const root = mkdtempSync(join(tmpdir(), "svc-site-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "etc/svc"), { recursive: true });
  const settings = domain === "" ? "" : `SVC_DOMAIN=${domain}\nSVC_TLS_CERT_FILE=${FILES.certFile}\n`;
  writeFileSync(join(root, "etc/svc/orchestrator.env"), settings);
  return lookAtSite(thisMachine(readInstance("", root)), resolve);
}

test("names that lead to a port with their certificate are reached, and a machine without a domain has none", async () => {
  expect(await looked(`${DOMAIN}:${await shows(pair)}`)).toEqual({ unreached: [] });
  expect(await looked("")).toEqual({ unreached: [] });
});

test("names without an address, a closed port and another's certificate are told apart", async () => {
  const both = (text: string) => ["api", "49983-iany"].map((name) => `${name}.${DOMAIN}${text}`);
  const lost = () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));
  expect(await looked(DOMAIN, lost)).toEqual({ unreached: both(" has no address here (ENOTFOUND)") });
  const closed = await freePort();
  const refused = ` leads to 127.0.0.1:${closed}, where no TLS is spoken (ECONNREFUSED)`;
  expect(await looked(`${DOMAIN}:${closed}`)).toEqual({ unreached: both(refused) });
  const port = await shows(other);
  const wrong = ` leads to 127.0.0.1:${port}, where the certificate is for DNS:other.test, DNS:*.other.test`;
  expect(await looked(`${DOMAIN}:${port}`)).toEqual({ unreached: both(wrong) });
});

/** Ids of the checks that fail, or warn, where the program says this of its certificate. */
function judged(certificate: string, wanted: "failed" | "warning"): readonly string[] {
  const { certificate: said } = saidInJson(JSON.stringify({ checks: { database: "ok", certificate } }));
  const evidence = healthy();
  const seen = { ...evidence, ...program("orchestrator", { certificate: said })(evidence) };
  return judge(ALL_CHECKS, seen).flatMap(({ id, status }) => (status === wanted ? [id] : []));
}
const failed = (certificate: string) => judged(certificate, "failed");

test("the doctor repeats what the program says of names, chain and key, and leaves the expiry to its own checks", () => {
  const words = ({ certificate }: SitePair, at = Date.now()) =>
    stateOf(problemsOf({ certificate, key: "" }, { certFile: FILES.certFile, domain: DOMAIN, at }));
  const withoutChain = {
    ...pair,
    certificate: `${pair.certificate.split("-----END CERTIFICATE-----")[0] ?? ""}-----END CERTIFICATE-----\n`,
  };
  const useless = (given: SitePair) => stateOf([unusable(given, FILES)].filter((finding) => finding !== undefined));
  expect(failed(words(pair))).toEqual([]);
  expect(failed(words(pair, Date.now() + 390 * 86_400_000))).toEqual([]);
  for (const said of [
    words(other),
    useless({ ...pair, key: other.key }),
    useless({ ...pair, key: "none" }),
    useless({ ...pair, certificate: "none" }),
  ])
    expect(failed(said), said).toEqual(["certificates.site"]);
  // Of an authority of one's own there may be no chain.
  expect(failed(words(withoutChain))).toEqual([]);
  expect(judged(words(withoutChain), "warning")).toEqual(["certificates.chain"]);
});

test("an edge that is not ready says so in JSON, too", () => {
  const text = JSON.stringify({
    ready: false,
    checks: { edge: "failed: no orchestrator has answered yet", stopping: "ok" },
  });
  expect(saidInJson(text)).toEqual({
    failing: { edge: "failed: no orchestrator has answered yet" },
    certificate: undefined,
  });
});
