import { expect, test } from "vitest";
import { cleanedForLog, pullFailure } from "../../../../../agent/containers/images/pull-failure.ts";

const IMAGE = "registry.example.com/team/app:1";

test.each([
  [
    'Get "https://registry.example.com/v2/": dial tcp: lookup registry.example.com on 10.0.0.2:53: no such host',
    "the name of its registry cannot be resolved",
  ],
  [
    'Get "https://registry.example.com/v2/": dial tcp: lookup registry.example.com on 10.0.0.2:53: read udp 10.0.0.9:4711->10.0.0.2:53: i/o timeout',
    "the name of its registry cannot be resolved",
  ],
  [
    'Get "https://10.0.0.7:5000/v2/": dial tcp 10.0.0.7:5000: connect: connection refused',
    "its registry does not answer",
  ],
  ['Get "https://10.0.0.7:5000/v2/": net/http: TLS handshake timeout', "its registry did not answer in time"],
  ["no basic auth credentials", "its registry requires credentials, or refused those given"],
  ["unauthorized: authentication required", "its registry requires credentials, or refused those given"],
  [
    "pull access denied for team/app, repository does not exist or may require 'docker login'",
    "its registry has no such image, or shows it only with credentials",
  ],
  ["manifest for team/app:1 not found: manifest unknown", "its registry has no such image or tag"],
  ["toomanyrequests: You have reached your pull rate limit", "its registry allows no more pulls for now (rate limit)"],
  ["http: server gave HTTP response to HTTPS client", "its registry does not speak TLS"],
  ["x509: certificate signed by unknown authority", "Docker does not trust the certificate of its registry"],
  [
    "no matching manifest for linux/amd64 in the manifest list entries",
    "the registry has this image only for other processor types",
  ],
  ["write /var/lib/docker/tmp/x: no space left on device", "the node's disk is full"],
  ["something that has never been seen on 10.0.0.2", "Docker refused it"],
])("%s: the error of the build names the image, the reason and a way out, without text of Docker", (said, reason) => {
  const message = pullFailure(IMAGE, said);
  expect(message.startsWith(`the image ${IMAGE} cannot be pulled: ${reason}; `)).toBe(true);
  expect(message).not.toMatch(/10\.0\.0|dial tcp|\/var\/lib|x509/);
});

test("the log has Docker's text in one line, without credentials in addresses, up to a limit", () => {
  const said = `Get "https://user:hunter2@example.com/v2?a=1&x-token=abc&b=2"\nrefused\u001b[31m${"x".repeat(2_000)}`;
  const cleaned = cleanedForLog(said);
  expect(cleaned).toContain('Get "https://***@example.com/v2?a=1&x-token=***&b=2" refused');
  expect(cleaned).not.toMatch(/hunter2|abc|\p{Cc}/u);
  expect(cleaned).toHaveLength(500);
});
