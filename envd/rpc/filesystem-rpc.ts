/** The `filesystem.Filesystem` service: converts messages to calls and results to messages. */

import { posix } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { EventType, type Filesystem, type FilesystemEventSchema } from "../../shared/envd-rpc/gen/filesystem_pb.js";
import { AppError } from "../../shared/http/errors.ts";
import type { Entries } from "../filesystem/entry.ts";
import { moveEntry } from "../filesystem/move.ts";
import { listTree, makeNewDirectory, readableDirectory, removeTree } from "../filesystem/tree.ts";
import { DirectoryWatch, type WatchEvent } from "../filesystem/watch/directory-watch.ts";
import { EventBuffer } from "../filesystem/watch/event-buffer.ts";
import { isNetworkMount } from "../filesystem/watch/network-mount.ts";
import type { PolledWatchers } from "../filesystem/watch/polled-watchers.ts";
import type { WatchHub } from "../filesystem/watch/watch-hub.ts";
import type { Session } from "../init/session.ts";
import type { System } from "../system/system.ts";
import type { User } from "../system/users.ts";
import { callerName } from "./caller.ts";
import { keepaliveMs } from "./keepalive.ts";

export interface FilesystemDeps {
  readonly session: Session;
  readonly system: System;
  readonly entries: Entries;
  readonly hub: WatchHub;
  readonly polled: PolledWatchers;
}

interface WatchRequest {
  readonly path: string;
  readonly recursive: boolean;
  readonly includeEntry: boolean;
  readonly allowNetworkMounts: boolean;
}

export function filesystemService(deps: FilesystemDeps): ServiceImpl<typeof Filesystem> {
  const { session, system, entries, hub, polled } = deps;

  const locate = (path: string, context: HandlerContext): { path: string; user: User } => {
    const user = session.user(callerName(context));
    return { path: session.path(path, user), user };
  };

  const watchOptions = async (request: WatchRequest, context: HandlerContext) => {
    const { path } = locate(request.path, context);
    const directory = await readableDirectory(path);
    if (!request.allowNetworkMounts && (await isNetworkMount(directory)))
      throw new AppError("bad_request", `path '${path}' is on a network mount: changes made elsewhere are not seen`);
    const entryRoot = request.includeEntry ? path : undefined;
    return { watch: { path: directory, recursive: request.recursive }, entryRoot };
  };

  return {
    async stat(request, context) {
      return { entry: await entries.get(locate(request.path, context).path) };
    },

    async makeDir(request, context) {
      const { path, user } = locate(request.path, context);
      await makeNewDirectory(path, user, context.signal);
      return { entry: await entries.get(path) };
    },

    async move(request, context) {
      const { path: source, user } = locate(entryName(request.source), context);
      const destination = session.path(entryName(request.destination), user);
      await moveEntry({ source, destination, owner: user }, system, context.signal);
      return { entry: await entries.get(destination) };
    },

    async listDir(request, context) {
      const paths = await listTree(locate(request.path, context).path, request.depth, context.signal);
      return { entries: await entries.getAll(paths) };
    },

    async remove(request, context) {
      await removeTree(locate(entryName(request.path), context).path, context.signal);
      return {};
    },

    async *watchDir(request, context) {
      const { watch: options, entryRoot } = await watchOptions(request, context);
      const idleMs = keepaliveMs(context.requestHeader.get("keepalive-ping-interval"));
      const buffer = new EventBuffer();
      const watch = await DirectoryWatch.open(hub, options, buffer);
      try {
        yield { event: { case: "start", value: {} } };
        for (;;) {
          const events = await buffer.next(idleMs, context.signal);
          if (events.length === 0) yield { event: { case: "keepalive", value: {} } };
          for (const value of await toMessages(events, entryRoot, entries))
            yield { event: { case: "filesystem", value } };
        }
      } finally {
        await watch.close();
      }
    },

    async createWatcher(request, context) {
      const { watch, entryRoot } = await watchOptions(request, context);
      return { watcherId: await polled.create(watch, entryRoot) };
    },

    async getWatcherEvents(request) {
      const { entryRoot, events } = polled.fetch(request.watcherId);
      return { events: await toMessages(events, entryRoot, entries) };
    },

    async removeWatcher(request) {
      await polled.remove(request.watcherId);
      return {};
    },
  };
}

/**
 * The path of an entry that is removed, moved or replaced. An empty path means the work directory elsewhere; here it is
 * rather a variable that was never set.
 * @throws {AppError} bad_request for what `rm` and `rename` refuse: an empty path, and `.` or `..` as its last part
 */
function entryName(path: string): string {
  if (path === "") throw new AppError("bad_request", "the path is empty: name the file or directory");
  if (/(^|\/)\.\.?\/*$/.test(path))
    throw new AppError("bad_request", `path '${path.slice(0, 200)}' ends in '.' or '..': name the directory itself`);
  return path;
}

/** With a root, adds the entry to each event whose file still exists. */
async function toMessages(
  events: readonly WatchEvent[],
  root: string | undefined,
  entries: Entries,
): Promise<MessageInitShape<typeof FilesystemEventSchema>[]> {
  if (root === undefined) return events.map(({ name, type }) => ({ name, type }));
  const pathOf = ({ name }: WatchEvent) => posix.join(root, name);
  const hasEntry = ({ type }: WatchEvent) => type !== EventType.REMOVE && type !== EventType.RENAME;
  const found = await entries.getAll([...new Set(events.filter(hasEntry).map(pathOf))]);
  const byPath = new Map(found.map((entry) => [entry.path, entry]));
  return events.map((event) => {
    const entry = hasEntry(event) ? byPath.get(pathOf(event)) : undefined;
    const { name, type } = event;
    return entry === undefined ? { name, type } : { name, type, entry };
  });
}
