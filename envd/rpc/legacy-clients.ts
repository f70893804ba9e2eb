/**
 * Answers for Python clients of mid 2025 (`e2b` 1.5.0 to 1.5.2), which fail at every field that they do not know. They
 * are known by the name under which they call; entries hold only what they know then.
 */

import { create, isMessage, type Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import {
  type EntryInfo,
  EntryInfoSchema,
  FilesystemEventSchema,
  FileType,
  GetWatcherEventsResponseSchema,
  ListDirResponseSchema,
  MakeDirResponseSchema,
  MoveResponseSchema,
  StatResponseSchema,
  WatchDirResponseSchema,
} from "../../shared/envd-rpc/gen/filesystem_pb.js";

const LEGACY_AGENT = "connect-python";
/** Tells those who look at an answer why fields are missing. */
const NOTICE = "X-E2B-Legacy-SDK";

export const legacyClients: Interceptor = (next) => async (request) => {
  if (request.header.get("user-agent") !== LEGACY_AGENT) return next(request);
  const response = await next(request);
  response.header.set(NOTICE, "true");
  if (response.stream) return { ...response, message: eachShort(response.message) };
  return { ...response, message: short(response.message) };
};

async function* eachShort<T extends Message>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const message of messages) yield short(message);
}

/** Changes the message in place, because no other code holds it. */
function short<T extends Message>(message: T): T {
  if (isMessage(message, ListDirResponseSchema)) message.entries = message.entries.map(shortEntry);
  else if (isMessage(message, GetWatcherEventsResponseSchema)) message.events.forEach(withoutEntry);
  else if (isMessage(message, WatchDirResponseSchema)) withoutEntry(message.event.value);
  else if (
    isMessage(message, StatResponseSchema) ||
    isMessage(message, MakeDirResponseSchema) ||
    isMessage(message, MoveResponseSchema)
  ) {
    if (message.entry !== undefined) message.entry = shortEntry(message.entry);
  }
  return message;
}

// These clients know no links: one that leads nowhere is of no kind to them, like a device.
function shortEntry({ name, type, path }: EntryInfo): EntryInfo {
  return create(EntryInfoSchema, { name, path, type: type === FileType.SYMLINK ? FileType.UNSPECIFIED : type });
}

function withoutEntry(event: unknown): void {
  if (isMessage(event, FilesystemEventSchema)) delete event.entry;
}
