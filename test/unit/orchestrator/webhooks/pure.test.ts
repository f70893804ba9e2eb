/** Signatures that receivers check with a library or by hand, times of retries, and what the delivery log leaves out. */

import { createHash } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { faultOfError, faultOfStatus } from "../../../../orchestrator/webhooks/faults.ts";
import { redacted } from "../../../../orchestrator/webhooks/redact.ts";
import { nextAttempt, readRetryAfter } from "../../../../orchestrator/webhooks/schedule.ts";
import { deliveryHeaders, inEitherAlphabet } from "../../../../orchestrator/webhooks/signature.ts";

const HOUR_MS = 3_600_000;

describe("signatures", () => {
  const WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const body = JSON.stringify({ id: "e", text: "ü" });
  const headersOf = (secret: string) =>
    deliveryHeaders({ webhookId: "w", deliveryId: "d", messageId: "e", at: Date.now(), secret, body });

  test.each([WHSEC, "plain secret", "ünïcode", "whsec_not base64!"])(
    "are those of the wire protocol, with the secret %s",
    (secret) => {
      const signature = createHash("sha256").update(secret).update(body).digest("base64url");
      for (const prefix of ["e2b", "svc"]) {
        expect(headersOf(secret)).toMatchObject({
          [`${prefix}-webhook-id`]: "w",
          [`${prefix}-delivery-id`]: "d",
          [`${prefix}-signature-version`]: "v1",
          [`${prefix}-signature`]: signature,
        });
      }
    },
  );

  test("pass the library of Standard Webhooks with its own form of a secret", () => {
    expect(new Webhook(WHSEC).verify(body, headersOf(WHSEC))).toEqual(JSON.parse(body));
  });

  test.each(["plain secret", "ünïcode", "whsec_not base64!"])(
    "pass the library with the bytes of the secret %s",
    (secret) => {
      const bytes = `whsec_${Buffer.from(secret).toString("base64")}`;
      expect(new Webhook(bytes).verify(body, headersOf(secret))).toEqual(JSON.parse(body));
      expect(() => new Webhook(bytes).verify(`${body} `, headersOf(secret))).toThrow(/No matching signature/);
    },
  );
});

describe("the body of a delivery", () => {
  const event = {
    version: "v1",
    id: "e",
    type: "webhook.disabled",
    eventData: { note: "ü" },
    sandboxTeamId: "p",
    timestamp: "2026-01-01T00:00:00.000Z",
    event_data: { note: "ü" },
    sandbox_team_id: "p",
  };
  const bodies = Array.from({ length: 200 }, (_, index) => JSON.stringify({ ...event, id: `e${index}` }));

  test("has an order of its fields for which base64 and base64url of the older signature are the same", () => {
    for (const stored of bodies) {
      const body = inEitherAlphabet(stored, "hush");
      const digest = createHash("sha256").update(`hush${body}`).digest();
      const { "e2b-signature": sent } = deliveryHeaders({
        webhookId: "w",
        deliveryId: "d",
        messageId: "e",
        at: 0,
        secret: "hush",
        body,
      });
      expect([digest.toString("base64").replace(/=+$/, ""), digest.toString("base64url")]).toEqual([sent, sent]);
    }
  });

  test("is the event, also for receivers that read it and write it again, and the same at each attempt", () => {
    for (const stored of bodies) {
      const body = inEitherAlphabet(stored, "hush");
      expect(JSON.parse(body)).toEqual(JSON.parse(stored));
      expect(JSON.stringify(JSON.parse(body))).toBe(body);
      expect(inEitherAlphabet(stored, "hush")).toBe(body);
    }
  });
});

describe("a failed attempt", () => {
  const url = new URL("https://hooks.example.com/in?a=1");
  const failed = (code: string, message = "") => faultOfError(Object.assign(new Error(message), { code }));

  test.each([
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "does not send its intermediate certificates"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "no authority that this machine trusts"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "is signed by itself"],
    ["SELF_SIGNED_CERT_IN_CHAIN", "no authority that this machine trusts"],
    ["CERT_HAS_EXPIRED", "has expired"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "is for another name"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "begins with http://"],
    ["EPROTO", "TLS failed (EPROTO)"],
    ["INVALID_PURPOSE", "TLS failed (INVALID_PURPOSE)"],
  ])("with %s is one of TLS, and says what was wrong", (code, words) => {
    const { errorClass, error } = failed(code);
    expect(errorClass).toBe("tls");
    expect(error).toContain(words);
    expect(error).toContain(`(${code})`);
  });

  test.each([
    [
      failed("ECONNRESET", "Client network socket disconnected before secure TLS connection was established"),
      "tls",
      "in the handshake (ECONNRESET)",
    ],
    [failed("ECONNRESET", "read ECONNRESET"), "connection", "the connection failed (ECONNRESET)"],
    [failed("HPE_INVALID_CONSTANT"), "connection", "is not HTTP/1.1 (HPE_INVALID_CONSTANT)"],
    [failed("HPE_HEADER_OVERFLOW"), "connection", "is too long (HPE_HEADER_OVERFLOW)"],
    [failed("EAI_AGAIN"), "dns", "could not be resolved now (EAI_AGAIN)"],
    [failed("ENOTFOUND"), "dns", "the name was not found (ENOTFOUND)"],
    [
      faultOfError(new AggregateError([Object.assign(new Error("no"), { code: "ECONNREFUSED" })])),
      "connection",
      "the connection failed (ECONNREFUSED)",
    ],
    [faultOfError("no error"), "connection", "the connection failed"],
  ])("is %j", ({ errorClass, error }, wanted, words) => {
    expect(errorClass).toBe(wanted);
    expect(error.endsWith(words)).toBe(true);
  });

  test.each([
    ["https://hooks.example.com/in/?a=1", "https://hooks.example.com/in/?a=1"],
    ["/in/", "https://hooks.example.com/in/"],
    ["//www.example.com/in#here", "https://www.example.com/in"],
  ])("with a redirect to %s says which URL the webhook may have", (location, target) => {
    expect(faultOfStatus(308, location, url)).toEqual({
      errorClass: "redirect",
      error: `the receiver answered 308, and redirects are not followed: if ${target} is the receiver, set it as the webhook's url`,
    });
  });

  test.each([undefined, "http://[", "ftp://a.example/", "https://u:p@a.example/", `/${"x".repeat(300)}`, "#top"])(
    "with a redirect to %j, which no webhook can have, names no URL",
    (location) => {
      expect(faultOfStatus(302, location, url)?.error).toBe(
        "the receiver answered 302, and redirects are not followed",
      );
    },
  );
});

describe("the next attempt", () => {
  const failed = { attempts: 1, createdAt: 0, now: 1_000, random: 0.5 };

  test("is twice as far away each time, with jitter, and at most an hour", () => {
    expect([1, 2, 3, 11, 1000].map((attempts) => (nextAttempt({ ...failed, attempts }) ?? 0) - 1_000)).toEqual([
      3_750, 7_500, 15_000, 2_700_000, 2_700_000,
    ]);
    expect([0, 0.999].map((random) => nextAttempt({ ...failed, random }))).toEqual([3_500, 5_998]);
  });

  test("is when the receiver asks for it, within an hour, and not before the own time", () => {
    const asked = (retryAfterMs: number) => (nextAttempt({ ...failed, retryAfterMs }) ?? 0) - 1_000;
    expect([asked(60_000), asked(0), asked(48 * HOUR_MS)]).toEqual([60_000, 3_750, HOUR_MS]);
  });

  test("does not come after a day", () => {
    expect(nextAttempt({ ...failed, now: 24 * HOUR_MS - 1 })).toBeGreaterThan(24 * HOUR_MS);
    expect(nextAttempt({ ...failed, now: 24 * HOUR_MS })).toBeUndefined();
  });

  test("reads Retry-After as seconds or as a date", () => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    const read = (header: string | undefined) => readRetryAfter(header, now);
    expect([read("120"), read("Thu, 01 Jan 2026 00:01:00 GMT"), read("Wed, 31 Dec 2025 00:00:00 GMT")]).toEqual([
      120_000, 60_000, 0,
    ]);
    expect([read(undefined), read("soon"), read("-1x")]).toEqual([undefined, undefined, undefined]);
  });
});

describe("the log", () => {
  test.each([
    ['{"my_secret": "abc\\"def", "n": 1}', '{"my_secret": "[redacted]", "n": 1}'],
    ['{"accessToken":"abc', '{"accessToken":"[redacted]"'],
    ["Authorization: Basic abc\nnext", "Authorization: [redacted]\nnext"],
    ["sent Bearer abc.def-1 to me", "sent Bearer [redacted] to me"],
    [`key svc_${"0a".repeat(20)}!`, "key [redacted]!"],
    ["the secret is hush-hush", "the secret is [redacted]"],
    ["a\u0000b\u001b[1m\n", "a\u{FFFD}b\u{FFFD}[1m\n"],
  ])("shows %j as %j", (text, shown) => {
    expect(redacted(text, "hush-hush")).toBe(shown);
  });

  test("shows the beginning of a long text", () => {
    expect(redacted("x".repeat(5_000), "s")).toHaveLength(2_048);
  });
});
