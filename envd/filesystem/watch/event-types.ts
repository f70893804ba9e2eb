/** Pure: maps inotify's bits to events of the public protocol. */

import { EventType } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import { In } from "./watch-mask.ts";

/** In the order in which clients get them: create, rename, chmod, write, remove. */
const MEANINGS: readonly (readonly [number, EventType])[] = [
  [In.CREATE | In.MOVED_TO, EventType.CREATE],
  [In.MOVED_FROM | In.MOVE_SELF, EventType.RENAME],
  [In.ATTRIB, EventType.CHMOD],
  [In.MODIFY, EventType.WRITE],
  [In.DELETE | In.DELETE_SELF, EventType.REMOVE],
];

export function eventTypes(mask: number): EventType[] {
  return MEANINGS.filter(([bits]) => (mask & bits) !== 0).map(([, type]) => type);
}
