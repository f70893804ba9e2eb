import { describe, expect, it } from "vitest";
import { joinTokenText, readJoinToken } from "../../../../../shared/agent-api/joining/join-token.ts";

const token = { digest: "a".repeat(64), id: "abcdefghij12", secret: "S_-".padEnd(32, "x") };
const text = joinTokenText(token);

describe("a join token", () => {
  it.each([text, ` ${text}\n`])("is read from what people paste", (pasted) => {
    expect(readJoinToken(pasted)).toEqual(token);
  });

  it.each([
    ["", "begins with 'svcjoin1.'"],
    ["svc_0123", "begins with 'svcjoin1.'"],
    [text.slice(0, -1), "is cut off or changed, it has 118 characters of 119"],
    [`${text}x`, "is cut off or changed, it has 120 characters of 119"],
    [text.toUpperCase().replace("SVCJOIN1", "svcjoin1"), "is cut off or changed"],
    [text.replace(".", "..").slice(0, text.length), "is cut off or changed"],
  ])("that is not whole is refused without its text: %j", (pasted, why) => {
    expect(() => readJoinToken(pasted)).toThrow(why);
    expect(() => readJoinToken(pasted)).not.toThrow(token.secret);
  });

  it("has 119 characters", () => {
    expect(text).toHaveLength(119);
  });
});
