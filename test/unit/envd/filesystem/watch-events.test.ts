import { expect, test } from "vitest";
import { EventBuffer } from "../../../../envd/filesystem/watch/event-buffer.ts";
import { eventTypes } from "../../../../envd/filesystem/watch/event-types.ts";
import { In } from "../../../../envd/filesystem/watch/watch-mask.ts";
import { EventType } from "../../../../shared/envd-rpc/gen/filesystem_pb.js";
import { AppError } from "../../../../shared/http/errors.ts";

test("one event of the kernel may become several events, in a fixed order", () => {
  const mask = In.DELETE | In.MODIFY | In.ATTRIB | In.MOVED_FROM | In.CREATE;
  expect(eventTypes(mask)).toEqual([
    EventType.CREATE,
    EventType.RENAME,
    EventType.CHMOD,
    EventType.WRITE,
    EventType.REMOVE,
  ]);
});

test.each([
  [In.MOVED_TO, [EventType.CREATE]],
  [In.MOVE_SELF, [EventType.RENAME]],
  [In.DELETE_SELF, [EventType.REMOVE]],
  [In.IGNORED, []],
])("mask %i means %j", (mask, types) => {
  expect(eventTypes(mask)).toEqual(types);
});

const event = { name: "x", type: EventType.WRITE };
const never = new AbortController().signal;

test("a waiting reader gets an event at once", async () => {
  const buffer = new EventBuffer();
  const next = buffer.next(60_000, never);
  buffer.event(event);
  expect(await next).toEqual([event]);
});

test("a quiet period without events reports nothing", async () => {
  expect(await new EventBuffer().next(1, never)).toEqual([]);
});

test("a waiting reader that aborts gets its own reason", async () => {
  const leaving = new AbortController();
  const next = new EventBuffer().next(60_000, leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(next).rejects.toThrow("gone");
});

test("a failure comes after the events before it", () => {
  const buffer = new EventBuffer();
  buffer.event(event);
  buffer.failed(new AppError("unavailable", "lost"));
  expect(buffer.take()).toEqual([event]);
  expect(() => buffer.take()).toThrow("lost");
});

test("an overflow of events is reported", () => {
  const buffer = new EventBuffer();
  for (let i = 0; i < 70_000; i += 1) buffer.event(event);
  expect(buffer.take().length).toBe(65_536);
  expect(() => buffer.take()).toThrow("events were lost");
});
