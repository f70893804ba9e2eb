/** What a query means, and how the refusal of a query or a body reads. */

import { Type } from "typebox";
import { expect, test } from "vitest";
import { Timestamp, UnixSeconds } from "../../../../shared/api/common.ts";
import { webhookApi } from "../../../../shared/api/events/webhooks.ts";
import { keyApi } from "../../../../shared/api/teams.ts";
import { tagApi } from "../../../../shared/api/templates.ts";
import { bodyReader, queryReader } from "../../../../shared/http/input.ts";

const read = queryReader({
  method: "GET",
  path: "/things",
  summary: "Lists things",
  tag: "Test",
  access: "project",
  status: 200,
  query: Type.Object({
    after: Type.Optional(Timestamp),
    start: Type.Optional(UnixSeconds),
    text: Type.Optional(Type.String()),
  }),
});

test.each([
  ["2026-01-02T03:04:05 01:00", "2026-01-02T03:04:05+01:00"],
  ["2026-01-02T03:04:05.5 00:00", "2026-01-02T03:04:05.5+00:00"],
  ["2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05+01:00"],
  ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
])("the time %s means %s", (after, expected) => {
  expect(read?.({ after })).toEqual({ after: expected });
});

test("a space in other text stays one", () => {
  expect(read?.({ text: "at 01:00" })).toEqual({ text: "at 01:00" });
});

test.each([
  [{ after: "2026-01-02T03:04:05" }, "query field 'after' must be a time with its offset from UTC"],
  [{ after: "2026-01-02 03:04:05Z" }, "query field 'after' must be a time with its offset from UTC"],
  [{ start: "1767225600000" }, "query field 'start' must be Unix time in seconds"],
])("the refusal of %j says what the value must be", (query, message) => {
  expect(() => read?.(query)).toThrow(message);
});

test("Unix time in seconds is taken", () => {
  expect(read?.({ start: "1767225600" })).toEqual({ start: 1_767_225_600 });
});

test.each([
  ["a tag", tagApi.assignTags, { target: "base", tags: ["v1", "feature/x"] }, "body field 'tags.1' must be of a-z"],
  ["a name", keyApi.createKey, { name: "  " }, "body field 'name' must not be blank or have control characters"],
  [
    "a URL",
    webhookApi.updateWebhook,
    { url: "example.com/hook" },
    "body field 'url' must begin with http:// or https://",
  ],
])("the refusal of %s says in words what its form is", (_what, route, body, message) => {
  expect(() => bodyReader(route)?.(body)).toThrow(message);
});
