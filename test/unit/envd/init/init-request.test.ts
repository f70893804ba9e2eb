import { expect, test } from "vitest";
import { parseInit } from "../../../../envd/init/init-request.ts";

test("every field of an init request is optional, and unknown fields are ignored", () => {
  expect(parseInit({ lifecycleID: "x", volumeMounts: [] })).toEqual({
    settings: {
      accessToken: undefined,
      envVars: {},
      networkVariables: {},
      defaultUser: undefined,
      defaultWorkdir: undefined,
      sandboxId: undefined,
      templateId: undefined,
      executionId: undefined,
    },
    timestamp: undefined,
    caBundle: undefined,
    controlToken: undefined,
  });
});

test("an empty text counts as not given, except for the certificate, which it removes", () => {
  const { settings, caBundle } = parseInit({ accessToken: "", defaultUser: "", caBundle: "" });
  expect([settings.accessToken, settings.defaultUser, caBundle]).toEqual([undefined, undefined, ""]);
});

test("a field of an init request that is null counts as not given", () => {
  expect(parseInit({ accessToken: null, envVars: null, timestamp: null }).settings.envVars).toEqual({});
});

test("the timestamp of an init request is RFC 3339", () => {
  expect(parseInit({ timestamp: "2026-01-02T03:04:05.678Z" }).timestamp).toBe(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
});

test.each([
  [{ accessToken: 5 }, "accessToken must be a text"],
  [{ envVars: [] }, "envVars must be an object"],
  [{ envVars: { A: 1 } }, "envVars.A must be a text"],
  [{ envVars: { "A=B": "secret" } }, "envVars.A=B is not a valid variable"],
  [{ timestamp: "soon" }, "timestamp must be an RFC 3339 time"],
])("%j is refused: %s", (body, message) => {
  expect(() => parseInit(body)).toThrow(message);
});

test("the refusal of an init request never repeats a value", () => {
  expect(() => parseInit({ envVars: { TOKEN: "s3cret\0" } })).toThrow(expect.not.stringContaining("s3cret"));
});
