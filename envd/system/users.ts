/** Users and groups from /etc/passwd and /etc/group. Own parsers, so that they work in any image, with any libc or none. */

import { readFileSync, statSync } from "node:fs";
import { AppError } from "../../shared/http/errors.ts";

export interface User {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** What the user database names; nothing for a number that no user has. */
  readonly shell?: string;
  /** Supplementary groups, without the primary one. */
  readonly groups: readonly number[];
}

export interface Passwd {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly shell?: string;
}

export interface Group {
  readonly name: string;
  readonly gid: number;
  readonly members: readonly string[];
}

/** Unreadable lines are skipped, as in libc. */
export function parsePasswd(text: string): Passwd[] {
  const users: Passwd[] = [];
  for (const line of text.split("\n")) {
    const [name, , uid, gid, , home = "", shell = ""] = line.split(":");
    if (name === undefined || name === "" || name.startsWith("#") || !isId(uid) || !isId(gid)) continue;
    const ids = { uid: Number(uid), gid: Number(gid) };
    users.push({ name, ...ids, home: home === "" ? "/" : home, shell: shell.trim() === "" ? "/bin/sh" : shell.trim() });
  }
  return users;
}

export function parseGroup(text: string): Group[] {
  const groups: Group[] = [];
  for (const line of text.split("\n")) {
    const [name, , gid, members] = line.split(":");
    if (name === undefined || name === "" || name.startsWith("#") || !isId(gid)) continue;
    groups.push({ name, gid: Number(gid), members: (members ?? "").trim().split(",").filter(Boolean) });
  }
  return groups;
}

function isId(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,10}$/.test(text) && Number(text) <= 0xffffffff;
}

/**
 * The user of `name` or `name:group`, as `USER` of a Dockerfile has it: each a name or a number. A number that no user has
 * gets group 0 and `/`. A group that is named takes the place of all groups of the user. Undefined when the image does not
 * know the name of the user or the group.
 */
export function findUser(name: string, passwd: readonly Passwd[], group: readonly Group[]): User | undefined {
  const [userName = "", groupName, ...more] = name.split(":");
  const entry =
    passwd.find((user) => user.name === userName) ?? numericUser(userName, passwd) ?? rootWithoutFile(userName);
  if (entry === undefined || more.length > 0) return undefined;
  if (groupName !== undefined) {
    const gid = group.find((each) => each.name === groupName)?.gid ?? (isId(groupName) ? Number(groupName) : undefined);
    return gid === undefined ? undefined : { ...entry, gid, groups: [] };
  }
  const groups = group.filter(({ gid, members }) => gid !== entry.gid && members.includes(entry.name));
  return { ...entry, groups: groups.map(({ gid }) => gid) };
}

function numericUser(name: string, passwd: readonly Passwd[]): Passwd | undefined {
  if (!isId(name)) return undefined;
  const uid = Number(name);
  return passwd.find((user) => user.uid === uid) ?? { name, uid, gid: 0, home: "/" };
}

// The user root exists even where no file names it.
function rootWithoutFile(name: string): Passwd | undefined {
  return name === "root" ? { name, uid: 0, gid: 0, home: "/root" } : undefined;
}

/** A sandbox can put any file here; no user database is this large. */
const LARGEST_FILE_BYTES = 4 * 1024 * 1024;

interface Cached<T> {
  readonly stamp: string;
  readonly entries: readonly T[];
}

/** The live user database: read again when a file has changed. */
export class Users {
  readonly #etc: string;
  #passwd: Cached<Passwd> = { stamp: "", entries: [] };
  #group: Cached<Group> = { stamp: "", entries: [] };

  /** @param etc directory of `passwd` and `group`, `/etc` outside of tests */
  constructor(etc = "/etc") {
    this.#etc = etc;
  }

  find(name: string): User | undefined {
    return findUser(name, this.#users(), this.#groups());
  }

  /** @throws {AppError} unauthorized, naming the user */
  get(name: string): User {
    const user = this.find(name);
    if (user === undefined) throw new AppError("unauthorized", `invalid username: '${name}'`);
    return user;
  }

  /** The name, or the number where there is none. */
  userName(uid: number): string {
    return this.#users().find((user) => user.uid === uid)?.name ?? String(uid);
  }

  groupName(gid: number): string {
    return this.#groups().find((group) => group.gid === gid)?.name ?? String(gid);
  }

  #users(): readonly Passwd[] {
    this.#passwd = refresh(`${this.#etc}/passwd`, this.#passwd, parsePasswd);
    return this.#passwd.entries;
  }

  #groups(): readonly Group[] {
    this.#group = refresh(`${this.#etc}/group`, this.#group, parseGroup);
    return this.#group.entries;
  }
}

// Synchronous: two calls of a few microseconds, against four turns of the event loop before every command.
function refresh<T>(path: string, cached: Cached<T>, parse: (text: string) => T[]): Cached<T> {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile() || stat.size > LARGEST_FILE_BYTES) return { stamp: "", entries: [] };
  const stamp = `${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
  if (stamp === cached.stamp) return cached;
  return { stamp, entries: parse(readFileSync(path, "utf8")) };
}
