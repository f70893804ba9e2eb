/** Pure: inotify's bits. */

/** The bits of inotify that watches use. */
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
