/** Pure: inotify's bits, and what they mean in the public protocol. */

import { EventType } from "../gen/filesystem_pb.js";

/** Bits of inotify that matter here. */
export const In = {
  MODIFY: 0x2,
  ATTRIB: 0x4,
  MOVED_FROM: 0x40,
  MOVED_TO: 0x80,
  CREATE: 0x100,
  DELETE: 0x200,
  DELETE_SELF: 0x400,
  MOVE_SELF: 0x800,
  Q_OVERFLOW: 0x4000,
  IGNORED: 0x8000,
  ONLYDIR: 0x01000000,
  DONT_FOLLOW: 0x02000000,
  ISDIR: 0x40000000,
} as const;

const WATCHED =
  In.MODIFY |
  In.ATTRIB |
  In.MOVED_FROM |
  In.MOVED_TO |
  In.CREATE |
  In.DELETE |
  In.DELETE_SELF |
  In.MOVE_SELF |
  In.ONLYDIR;

/** For the directory a client named, which may be a link, and for those found below it, which may not. */
export const ROOT_MASK: number = WATCHED;
export const NESTED_MASK: number = WATCHED | In.DONT_FOLLOW;

/** In the order in which clients are told: create, rename, chmod, write, remove. */
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
