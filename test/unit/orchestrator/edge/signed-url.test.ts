import { expect, test } from "vitest";
import { findSigner, readSigned } from "../../../../orchestrator/edge/signed-url.ts";

const token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
const signature = "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E";
const routes = [{ envdAccessToken: "another" }, { envdAccessToken: token }, { envdAccessToken: "a third" }];

function find(method: string, query: Record<string, string>, path = "/files") {
  const signed = readSigned(method, `${path}?${new URLSearchParams(query).toString()}`);
  return signed === undefined ? "not signed" : findSigner(signed, routes)?.envdAccessToken;
}

test("the sandbox is the one whose token made the signature", () => {
  // The SDK signs a URL like this.
  expect(find("GET", { path: "hello.txt", username: "user", signature })).toBe(token);
  expect(find("HEAD", { path: "hello.txt", username: "user", signature })).toBe(token);
});

test.each([
  ["another operation", "POST", { path: "hello.txt", username: "user", signature }],
  ["another path", "GET", { path: "hello.tx", username: "user", signature }],
  ["another user", "GET", { path: "hello.txt", username: "root", signature }],
  [
    "an expiration that was not signed",
    "GET",
    { path: "hello.txt", username: "user", signature, signature_expiration: "1" },
  ],
  ["another signature", "GET", { path: "hello.txt", username: "user", signature: signature.replace("g", "h") }],
  ["no signature of ours", "GET", { path: "hello.txt", username: "user", signature: "v1_" }],
])("a signed URL with %s finds no sandbox", (_name, method, query) => {
  expect(find(method, query)).toBeUndefined();
});

test("only /files is signed, and only with a signature", () => {
  expect(find("GET", { path: "x" })).toBe("not signed");
  expect(find("GET", { path: "x", signature }, "/files/compose")).toBe("not signed");
  expect(readSigned("GET", "/files")).toBeUndefined();
});
