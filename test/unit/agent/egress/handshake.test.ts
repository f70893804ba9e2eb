import { expect, test } from "vitest";
import { handshakeFailure } from "../../../../agent/egress/rewrite/handshake.ts";

test.each([
  "ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE",
  "ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN",
  "ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE",
  "ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN",
  "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
])("%s of any version of OpenSSL means that the program does not trust the certificate", (code) => {
  expect(handshakeFailure({ code })).toMatch(/: the program does not trust .* \(ERR_SSL_[A-Z0-9_/]+\)$/);
});

test("a code without words is shown, and an error without a code has words", () => {
  expect(handshakeFailure({ code: "ERR_SSL_OTHER" })).toBe("the TLS handshake of the sandbox failed: ERR_SSL_OTHER");
  expect(handshakeFailure(new Error("x"))).toBe("the TLS handshake of the sandbox failed: it failed");
});
