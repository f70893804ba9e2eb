/**
 * The acts of a build's steps inside its container: `steps.js VERB JSON`, run as root by the node, in any image. Prints the
 * result, or on stderr why there is none, and then exits with 1.
 */

import { readFileSync, rmSync } from "node:fs";
import { findUser, parseGroup, parsePasswd, type User } from "../system/users.ts";
import { type CopyOrder, copyInto } from "./copy.ts";
import { makeDirectory } from "./directories.ts";
import { unpack } from "./unpack.ts";

interface Verbs {
  /** Unpacks the archive of a COPY step into a new directory. */
  readonly unpack: { readonly archive: string; readonly files: string };
  /** Moves the files of a COPY step to their place. */
  readonly copy: Omit<CopyOrder, "owner"> & { readonly owner: string };
  /** Makes a directory that is missing, with its parents, as its user's. Prints whether it was. */
  readonly directory: { readonly path: string; readonly user: string };
  /** Prints the home directory of a user. */
  readonly home: { readonly user: string };
}

const verbs: { readonly [Verb in keyof Verbs]: (order: Verbs[Verb]) => string | Promise<string> } = {
  async unpack({ archive, files }) {
    await unpack(archive, files);
    // Its bytes are there twice.
    rmSync(archive);
    return "";
  },
  copy(order) {
    copyInto({ ...order, owner: userOf(order.owner) });
    return "";
  },
  directory: ({ path, user }) => (makeDirectory(path, userOf(user)) ? "made" : "there"),
  home: ({ user }) => userOf(user).home,
};

/** @throws Error in the words of Docker and of envd */
function userOf(name: string): User {
  const passwd = parsePasswd(textOf("/etc/passwd"));
  const user = findUser(name, passwd, parseGroup(textOf("/etc/group")));
  if (user !== undefined) return user;
  const [userName = ""] = name.split(":", 1);
  if (findUser(userName, passwd, []) === undefined) throw new Error(`invalid username: '${userName}'`);
  throw new Error(`invalid group: '${name.slice(userName.length + 1)}': the image's /etc/group has no such group`);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

async function main(): Promise<void> {
  const [verb = "", json = "{}"] = process.argv.slice(2);
  if (!Object.hasOwn(verbs, verb)) throw new Error(`no verb '${verb}'`);
  const act = verbs[verb as keyof Verbs] as (order: unknown) => string | Promise<string>;
  process.stdout.write(await act(JSON.parse(json)));
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
