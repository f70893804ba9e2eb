/** From which pages the console takes changes, by the headers that browsers and proxies send. */

import { expect, test } from "vitest";
import { checkSite } from "../../../../orchestrator/console/rules.ts";

const change = (origin: string, host: string) => () =>
  checkSite({ method: "POST", host, origin, fetchSite: undefined });

test.each([
  ["https://console.example.com", "console.example.com"],
  ["https://console.example.com", "console.example.com:443"],
  ["http://console.example.com", "Console.example.com:80"],
  ["https://console.example.com:8443", "console.example.com:8443"],
  ["http://[::1]:3000", "[::1]:3000"],
])("a change from %s is of the host %s", (origin, host) => {
  expect(change(origin, host)).not.toThrow();
});

test.each([
  ["https://console.example.com", "console.example.com:80"],
  ["http://console.example.com", "console.example.com:443"],
  ["https://console.example.com:8443", "console.example.com"],
  ["https://evil.example.com", "console.example.com:443"],
  ["null", "console.example.com"],
])("a change from %s is not of the host %s", (origin, host) => {
  expect(change(origin, host)).toThrow("must come from its own page");
});

test("a proxy that puts its own name into Host is named with what it has to do", () => {
  expect(change("https://console.example.com", "127.0.0.1:3000")).toThrow(
    /at '127\.0\.0\.1:3000' by the header Host, and not from 'https:\/\/console\.example\.com': a proxy in front must leave Host/,
  );
});
