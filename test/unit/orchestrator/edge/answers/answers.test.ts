import { describe, expect, test } from "vitest";
import { answerFor, preflightAnswer, type Refusal } from "../../../../../orchestrator/edge/answers/answers.ts";
import { isNavigation, isPreflight, readerOf } from "../../../../../orchestrator/edge/answers/navigation.ts";
import { renderPage } from "../../../../../orchestrator/edge/answers/pages.ts";
import { unaddressedAnswer } from "../../../../../orchestrator/edge/answers/root.ts";

const sandboxId = "iabc";
const refusals: readonly (readonly [Refusal, number, object])[] = [
  [{ is: "not_found", sandboxId }, 502, { sandboxId, message: "The sandbox was not found", code: 502 }],
  [{ is: "paused", sandboxId }, 502, { sandboxId, message: "The sandbox is paused: connect to resume it", code: 502 }],
  [
    { is: "closed_port", sandboxId, port: 81 },
    502,
    { sandboxId, message: "The sandbox is running but port is not open", port: 81, code: 502 },
  ],
  [
    { is: "token_missing", sandboxId },
    403,
    {
      sandboxId,
      message: "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing",
      code: 403,
    },
  ],
  [
    { is: "token_invalid", sandboxId, header: "svc-traffic-access-token" },
    403,
    {
      sandboxId,
      message:
        "Sandbox is secured with traffic access token. Provided token in header 'svc-traffic-access-token' is invalid",
      code: 403,
    },
  ],
  [
    { is: "too_many_connections", sandboxId, connectionLimit: 5 },
    429,
    { sandboxId, message: "Too many connections to the sandbox", connectionLimit: 5, code: 429 },
  ],
  [{ is: "transitioning", sandboxId }, 409, { sandboxId, message: "The sandbox is still transitioning", code: 409 }],
  [
    { is: "interrupted", sandboxId, by: "pause" },
    502,
    {
      sandboxId,
      message:
        "The sandbox was paused while the request was under way, and may have carried it out: connect to resume it",
      code: 502,
    },
  ],
  [
    { is: "interrupted", sandboxId, by: "move" },
    503,
    {
      sandboxId,
      message:
        "The sandbox was moved to another node while the request was under way, and may have carried it out: the request was not sent again",
      code: 503,
    },
  ],
  [
    { is: "interrupted", sandboxId, by: "stop" },
    503,
    {
      sandboxId,
      message:
        "The platform restarts a program between you and the sandbox, which runs on and may have carried the request out: the request was not sent again",
      code: 503,
    },
  ],
  [{ is: "limited", sandboxId, message: "m" }, 429, { sandboxId, message: "m", code: 429 }],
  [{ is: "resume_denied", sandboxId, message: "m" }, 403, { sandboxId, message: "m", code: 403 }],
  [
    { is: "internal_route", sandboxId, path: "/init" },
    404,
    { sandboxId, message: "This route is reserved for the control plane", path: "/init", code: 404 },
  ],
];

describe.each(refusals)("%o", (refusal, status, body) => {
  test("is this body for scripts", () => {
    const answer = answerFor(refusal, "script");
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual(body);
    expect(headers(answer.headers)).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "access-control-allow-origin": "*",
      "content-length": String(Buffer.byteLength(answer.body)),
    });
  });

  test("is a page with the same status for people", () => {
    const answer = answerFor(refusal, "browser");
    expect(answer.status).toBe(status);
    expect(answer.body).toMatch(/^<!doctype html><html lang="en">.*<h1>.+<\/h1>.*iabc.*<\/html>$/s);
    expect(headers(answer.headers)).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "access-control-allow-origin": "*",
    });
  });
});

test("pages contain the text that clients look for", () => {
  expect(answerFor({ is: "not_found", sandboxId }, "browser").body).toContain("Sandbox Not Found");
  expect(answerFor({ is: "closed_port", sandboxId, port: 81 }, "browser").body).toContain(
    "no service running on port 81",
  );
});

test("a page contains no markup from the request", () => {
  const hostile = `<script>"'&`;
  const page = renderPage({ title: hostile, what: hostile, advice: hostile, sandboxId: hostile, status: 1 });
  expect(page).not.toContain("<script>");
  expect(page).toContain("&lt;script&gt;&quot;&#39;&amp;");
});

test("an invalid signature reads like envd's own", () => {
  const answer = answerFor({ is: "invalid_signature" }, "browser");
  expect([answer.status, JSON.parse(answer.body)]).toEqual([401, { code: 401, message: "invalid signature" }]);
});

test("a preflight answer allows the requested headers, and is not cached", () => {
  expect(headers(preflightAnswer("x-mine, authorization").headers)).toMatchObject({
    "access-control-allow-headers": "x-mine, authorization",
    "access-control-max-age": "0",
  });
  expect(headers(preflightAnswer("bad\u00e9").headers)).toMatchObject({ "access-control-allow-headers": "*" });
});

const chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0";
test.each([
  ["a bare browser", { "User-Agent": chrome }, true],
  ["a navigation", { "User-Agent": chrome, Accept: "text/html,*/*", "Sec-Fetch-Mode": "navigate" }, true],
  [
    "a navigation of an odd page",
    { "User-Agent": chrome, "Sec-Fetch-Mode": "navigate", "X-Requested-With": "x" },
    true,
  ],
  ["fetch in a page", { "User-Agent": chrome, Accept: "*/*", "Sec-Fetch-Mode": "cors" }, false],
  ["an image", { "User-Agent": chrome, "Sec-Fetch-Mode": "no-cors" }, false],
  ["a WebSocket", { "User-Agent": chrome, "Sec-Fetch-Mode": "websocket" }, false],
  ["a script that asks for JSON", { "User-Agent": chrome, Accept: "application/json" }, false],
  ["a page that takes JSON too", { "User-Agent": chrome, Accept: "text/html, application/json" }, true],
  ["an old script", { "User-Agent": chrome, "X-Requested-With": "XMLHttpRequest" }, false],
  ["Node", { "User-Agent": "node", Accept: "*/*" }, false],
  ["a client that names no format", {}, false],
])("%s gets a page: %s", (_name, given, expected) => {
  expect(isNavigation(Object.entries(given).flat())).toBe(expected);
});

test("a preflight is an OPTIONS request with Access-Control-Request-Method", () => {
  expect(isPreflight("OPTIONS", ["Access-Control-Request-Method", "PUT"])).toBe(true);
  expect(isPreflight("OPTIONS", [])).toBe(false);
  expect(isPreflight("GET", ["Access-Control-Request-Method", "PUT"])).toBe(false);
});

test("only a program that calls itself a browser and sends no Accept gets the page without a doctype", () => {
  const refusal: Refusal = { is: "not_found", sandboxId };
  const page = (headers: Record<string, string>) =>
    answerFor(refusal, readerOf(Object.entries(headers).flat())).body.slice(0, 10);
  expect(page({ "User-Agent": chrome, Accept: "text/html,*/*", "Sec-Fetch-Mode": "navigate" })).toBe("<!doctype ");
  expect(page({ "User-Agent": chrome, Accept: "*/*" })).toBe("<!doctype ");
  expect(page({ "User-Agent": chrome })).toBe("<html lang");
  expect(page({ "User-Agent": "node", Accept: "*/*" })).toBe('{"sandboxI');
});

describe("a request that names no sandbox", () => {
  const docsUrl = "http://localhost:3000/docs";
  const answered = (headers: Record<string, string>, path = "/", method = "GET") =>
    unaddressedAnswer(
      { method, rawHeaders: Object.entries(headers).flat() },
      { path, message: "missing header", docsUrl },
    );

  test("is explained to a browser at the bare address, with a link to the documentation", () => {
    const { status, body } = answered({ "User-Agent": chrome, Accept: "text/html" });
    expect([status, body.startsWith("<!doctype html>")]).toEqual([400, true]);
    expect(body).toContain("names no sandbox");
    expect(body).toContain(`href="${docsUrl}"`);
    expect(body).not.toContain("<dt>Sandbox</dt>");
  });

  test("is explained to a program that accepts JSON, and to curl in words", () => {
    const { status, body } = answered({ "User-Agent": "node", Accept: "application/json" });
    expect([status, JSON.parse(body)]).toMatchObject([400, { code: 400, docs: docsUrl }]);
    const words = answered({ "User-Agent": "curl/7.88.1", Accept: "*/*" });
    expect(headers(words.headers)).toMatchObject({ "content-type": "text/plain; charset=utf-8" });
    expect(words.body).toMatch(/^missing header\n\nThis is the address of the sandboxes/);
    expect(words.body).toContain(docsUrl);
  });

  test("has the one line of the wire rules for every other program, path and method", () => {
    const browser = { "User-Agent": chrome, Accept: "text/html" };
    for (const { body } of [
      answered({}),
      answered({ "User-Agent": "node", Accept: "*/*" }),
      answered(browser, "/x"),
      answered(browser, "/", "POST"),
    ])
      expect(body).toBe("missing header");
  });
});

function headers(list: readonly string[]): Record<string, string> {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < list.length; at += 2) pairs.push([(list[at] ?? "").toLowerCase(), list[at + 1] ?? ""]);
  return Object.fromEntries(pairs);
}
