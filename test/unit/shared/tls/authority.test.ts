import { createHash, createPublicKey, X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Authority, makePlatformAuthority, openAuthority } from "../../../../shared/tls/authority.ts";
import { factsOf, problemOf, renewalAt } from "../../../../shared/tls/credentials.ts";
import { digestOf, digestOfKey } from "../../../../shared/tls/digest.ts";
import { nodeName, ORCHESTRATOR } from "../../../../shared/tls/names.ts";
import { digestOfRequest, newPrivateKey, requestFor } from "../../../../shared/tls/request.ts";

const HOUR = 3_600_000;
const AT = Date.UTC(2026, 10, 26, 12);
const name = nodeName("n1");

async function authority(): Promise<Authority> {
  return openAuthority(await makePlatformAuthority(AT));
}

async function joined(by: Authority, at = AT) {
  const key = await newPrivateKey();
  return { authority: by.certificate, certificate: await by.sign(await requestFor(key), name, at), key };
}

describe("the platform's authority", () => {
  it("signs a certificate of 72 hours, back-dated by one, that names the peer only", async () => {
    const { certificate } = await joined(await authority());
    expect(factsOf(certificate)).toMatchObject({ name, from: AT - HOUR, until: AT + 72 * HOUR });
    const read = new X509Certificate(certificate);
    expect(read.subjectAltName).toBe("URI:svc://node/n1");
    expect(read.subject).toBe(undefined);
    expect(read.ca).toBe(false);
  });

  it("is named by the SHA-256 of its public key", async () => {
    const { certificate, digest } = await authority();
    const spki = new X509Certificate(certificate).publicKey.export({ type: "spki", format: "der" });
    expect(digest).toBe(createHash("sha256").update(spki).digest("hex"));
  });

  it("keeps the digest of a key in its request, its certificate and the next certificate", async () => {
    const by = await authority();
    const key = await newPrivateKey();
    const request = await requestFor(key);
    const digests = [
      digestOfKey(key),
      await digestOfRequest(request),
      digestOf(await by.sign(request, name, AT)),
      digestOf(await by.sign(await requestFor(key), name, AT + HOUR)),
    ];
    expect(new Set(digests).size).toBe(1);
  });

  it("gives two certificates of one key different serial numbers", async () => {
    const by = await authority();
    const request = await requestFor(await newPrivateKey());
    const serials = await Promise.all(
      [1, 2].map(async () => new X509Certificate(await by.sign(request, name, AT)).serialNumber),
    );
    expect(serials[0]).not.toBe(serials[1]);
  });

  it("refuses a request that another key signed", async () => {
    const request = await requestFor(await newPrivateKey());
    const der = Buffer.from(request.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
    // The last byte is part of the signature.
    der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
    const forged = `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString("base64")}\n-----END CERTIFICATE REQUEST-----\n`;
    await expect((await authority()).sign(forged, name, AT)).rejects.toThrow("is not signed by its own key");
  });

  it.each([
    { text: "", why: "cannot be read" },
    {
      text: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
      why: "cannot be read: it has to be PKCS #10 as PEM",
    },
    { text: "x".repeat(5_000), why: "has more than 4096 characters" },
  ])("refuses what is no request: it $why", async ({ text, why }) => {
    await expect((await authority()).sign(text, name, AT)).rejects.toThrow(why);
  });

  it("keeps the private key out of the request", async () => {
    const key = await newPrivateKey();
    const secret = createPublicKey(key).export({ format: "jwk" });
    expect(Object.keys(secret)).not.toContain("d");
    expect(await requestFor(key)).not.toContain("PRIVATE");
  });
});

describe("credentials", () => {
  it("are renewed when two thirds of the 72 hours have passed", async () => {
    const { certificate } = await joined(await authority());
    expect(renewalAt(factsOf(certificate))).toBe(AT + 48 * HOUR);
  });

  it.each([
    { when: "an hour before they were made", at: AT - HOUR, problem: undefined },
    { when: "more than an hour before", at: AT - HOUR - 1000, problem: "set the clock" },
    { when: "at their end", at: AT + 72 * HOUR, problem: undefined },
    { when: "after their end", at: AT + 72 * HOUR + 1000, problem: "join the platform again with a new token" },
  ])("say $when whether they can be used", async ({ at, problem }) => {
    const found = problemOf(await joined(await authority()), { as: name, at });
    if (problem === undefined) expect(found).toBe(undefined);
    else expect(found).toContain(problem);
  });

  it("of another authority, with another key, of another name, or damaged say so", async () => {
    const [one, two] = [await authority(), await authority()];
    const own = await joined(one);
    const check = (credentials: typeof own, as = name) => problemOf(credentials, { as, at: AT });
    expect(check({ ...own, authority: two.certificate })).toContain("of another authority");
    expect(check({ ...own, key: await newPrivateKey() })).toContain("the key is not that of the certificate");
    expect(check(own, nodeName("n2"))).toContain("is of svc://node/n1, not of svc://node/n2");
    expect(check({ ...own, certificate: "" })).toContain("cannot be read");
    expect(problemOf(await one.issue(ORCHESTRATOR, AT), { as: ORCHESTRATOR, at: AT })).toBe(undefined);
  });
});
