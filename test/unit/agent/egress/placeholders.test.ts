import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placeholdersIn, resolveHeaders, UnresolvedError } from "../../../../agent/egress/rewrite/placeholders.ts";
import { canBeSet } from "../../../../shared/policy/rule-headers.ts";

const known = (values: Record<string, string>) => (placeholder: string) => {
  const value = values[placeholder];
  return Promise.resolve(value === undefined ? { problem: "there is none" } : { value });
};
const nothing = known({});
const spaced = { "e2b.identity.tokens.my token (1)": "three" };

describe("values of rules", () => {
  test.each([
    ["plain", "plain"],
    ["", ""],
    ["Bearer ${e2b.secrets.A}", "Bearer one"],
    ["${svc.secrets.A}", "one"],
    ["${e2b.secrets.A}:${e2b.identity.tokens.T}:${e2b.secrets.A}", "one:two:one"],
    ["$${e2b.secrets.A}}", "$one}"],
    ["${HOME} ${e2bx.secrets.A} $e2b.secrets.A", "${HOME} ${e2bx.secrets.A} $e2b.secrets.A"],
    ["${e2b.identity.tokens.my token (1)}", "three"],
  ])("%j becomes %j", async (template, value) => {
    const resolve = known({ "e2b.secrets.A": "one", "e2b.identity.tokens.T": "two", ...spaced });
    expect([...(await resolveHeaders({ X: template }, resolve))]).toEqual([["X", value]]);
  });

  test.each([
    "${e2b.secrets.}",
    "${e2b.secret.A}",
    "${e2b.secrets.A",
    "${E2B.secrets.A}",
    "${e2b.secrets.A B}",
    "${svc.x}",
    "${e2b}",
    "${ e2b.secrets.A}",
    "${e2b.secrets.A.B}",
    `\${e2b.secrets.${"A".repeat(129)}}`,
    "${e2b.${e2b.secrets.A}}",
  ])("%s is malformed, and never sent as it is", async (template) => {
    await expect(resolveHeaders({ X: template }, known({ "e2b.secrets.A": "v" }))).rejects.toThrow(/is malformed$/);
  });

  test.each([
    "Host",
    "content-length",
    "Transfer-Encoding",
    "CONNECTION",
    "te",
    "Trailer",
    "Upgrade",
    "Expect",
    "Keep-Alive",
    "a b",
    "",
    "x:y",
    "x\r\ny",
  ])("the header %j cannot be set by a rule", async (name) => {
    expect(canBeSet(name)).toBe(false);
    await expect(resolveHeaders({ [name]: "x" }, nothing)).rejects.toThrow(UnresolvedError);
  });

  test.each([
    ["a\nb", "line breaks"],
    ["a\r\nX: y", "line breaks"],
    ["trailing\n\n", "line breaks"],
    ["a\0b", "control characters"],
    ["trailing\n", "a line break at its end, so store it without that"],
    ["trailing\r\n", "a line break at its end, so store it without that"],
    ["wide ☃", "characters outside of Latin-1"],
  ])("a value %j is refused, and the error names the placeholder and what was wrong only", async (value, fault) => {
    const failure = await resolveHeaders({ X: "a${e2b.secrets.A}" }, known({ "e2b.secrets.A": value })).catch(String);
    expect(failure).toBe(
      `Error: the value of the placeholder \${e2b.secrets.A} has characters that no header can have: ${fault}`,
    );
  });

  test("a value that begins or ends a header with white space is refused, because that would be lost", async () => {
    const failure = await resolveHeaders({ X: "${e2b.secrets.A}" }, known({ "e2b.secrets.A": " x" })).catch(String);
    expect(failure).toMatch(/^Error: the value of the header X begins or ends with white space/);
  });

  test("the resolver's own error text is not passed on", async () => {
    const failing = () => Promise.reject(new Error("vault: token hvs.123"));
    const failure = await resolveHeaders({ X: "${e2b.secrets.A}" }, failing).catch(String);
    expect(failure).toBe(
      "Error: the placeholder ${e2b.secrets.A} cannot be resolved: the node could not ask for its value",
    );
  });

  test("each placeholder is resolved once, and a value that looks like a placeholder is not resolved again", async () => {
    const asked: string[] = [];
    const resolve = (placeholder: string) => {
      asked.push(placeholder);
      return Promise.resolve({ value: "${e2b.secrets.B}$&$1" });
    };
    const headers = { X: "${e2b.secrets.A}", Y: "<${svc.secrets.A}>" };
    expect([...(await resolveHeaders(headers, resolve)).values()]).toEqual([
      "${e2b.secrets.B}$&$1",
      "<${e2b.secrets.B}$&$1>",
    ]);
    expect(asked).toEqual(["e2b.secrets.A"]);
  });

  test("one header name in two spellings becomes one header", async () => {
    expect([...(await resolveHeaders({ "X-A": "1", "x-a": "2" }, nothing))]).toEqual([["x-a", "2"]]);
  });
});

const part = fc.oneof(
  fc.constantFrom(
    "${",
    "}",
    "${e2b.",
    "${svc.",
    "${e2b.secrets.",
    "${e2b.identity.tokens.",
    "A",
    ".",
    "$",
    "{",
    "E2B",
    " ",
  ),
  fc.string({ maxLength: 6 }),
);

test("for any rule: no placeholder is sent, no value is logged, and either all are resolved or none", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 12 }), fc.boolean(), async (parts, there) => {
      const template = parts.join("");
      const secret = "V4LUE";
      const resolve = () => Promise.resolve(there ? { value: secret } : { problem: "none" });
      const outcome = await resolveHeaders({ X: template }, resolve).catch((error: unknown) => error);
      if (outcome instanceof Map) {
        const value = String(outcome.get("X"));
        expect(value).not.toMatch(/\$\{\s*(e2b|svc)\b/i);
        expect(value.split(secret)).toHaveLength(placeholdersIn(template).length + 1);
      } else {
        expect(outcome).toBeInstanceOf(UnresolvedError);
        expect(String(outcome)).not.toContain(secret);
      }
    }),
    { numRuns: 2_000 },
  );
});
