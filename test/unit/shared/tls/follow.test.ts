import { beforeAll, expect, test } from "vitest";
import { type Authority, makePlatformAuthority, openAuthority } from "../../../../shared/tls/authority.ts";
import { authoritiesIn, digestsIn, issuerIn } from "../../../../shared/tls/bundle.ts";
import { type Credentials, problemOf } from "../../../../shared/tls/credentials.ts";
import { followStep, saidBy } from "../../../../shared/tls/follow.ts";
import { nodeName } from "../../../../shared/tls/names.ts";

const AT = Date.UTC(2026, 10, 28);
const NAME = nodeName("n1");

let former: Authority;
let next: Authority;
let own: Credentials;
beforeAll(async () => {
  [former, next] = await Promise.all(
    [0, 1].map(async () => openAuthority(await makePlatformAuthority(AT))) as [Promise<Authority>, Promise<Authority>],
  );
  own = await former.issue(NAME, AT);
});

const told = (issuer: Authority, ...others: Authority[]) => ({
  trusted: [issuer, ...others].map(({ certificate }) => certificate),
  issuer: issuer.digest,
});

test("a machine that trusts what it is told changes nothing", () => {
  expect(followStep(own, told(former))).toEqual({ credentials: undefined, renew: false });
});

test("a second authority is trusted beside its own, which stays first", () => {
  const { credentials, renew } = followStep(own, told(former, next));
  expect(renew).toBe(false);
  expect(digestsIn(credentials?.authority ?? "")).toEqual([former.digest, next.digest]);
  expect(problemOf(credentials ?? own, { as: NAME, at: AT })).toBeUndefined();
  expect(saidBy(credentials ?? own)).toEqual({ trusted: [former.digest, next.digest], issuer: former.digest });
});

test("a certificate of another authority than the one that signs is renewed", () => {
  expect(followStep({ ...own, authority: own.authority + next.certificate }, told(next, former))).toMatchObject({
    renew: true,
  });
});

test("the former authority is dropped once the certificate is of the new one, and not before", async () => {
  const both = own.authority + next.certificate;
  const early = followStep({ ...own, authority: both }, told(next));
  expect(early.renew).toBe(true);
  expect(digestsIn(early.credentials?.authority ?? both)).toContain(former.digest);
  const renewed = { ...(await next.issue(NAME, AT)), authority: next.certificate + former.certificate };
  const { credentials, renew } = followStep(renewed, told(next));
  expect([renew, digestsIn(credentials?.authority ?? "")]).toEqual([false, [next.digest]]);
});

test("credentials have a problem when none of their authorities has signed the certificate", () => {
  const strange = { ...own, authority: next.certificate };
  expect(problemOf(strange, { as: NAME, at: AT })).toContain("another authority");
  expect(problemOf({ ...own, authority: next.certificate + former.certificate }, { as: NAME, at: AT })).toBeUndefined();
  expect(issuerIn(next.certificate, own.certificate)).toBeUndefined();
  expect(authoritiesIn("no certificate")).toEqual([]);
});
