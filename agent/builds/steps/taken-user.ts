/**
 * A command that adds a user or a group fails where its name or number is that of `user`, whom the platform adds to every
 * image: Dockerfiles like `useradd -u 1000`, which Docker builds. The reason of the failure says so.
 */

import { within } from "../../../shared/program/deadline.ts";
import { type BuildContainer, rootScript } from "./build-container.ts";

/** What useradd, adduser and their like say in shadow, in Debian's adduser and in busybox. */
const TAKEN_NUMBER = /\b[ug]id [`']?(\d+)'? (?:is not unique|already exists|(?:is already )?in use)/i;
const TAKEN_NAME = /\b(?:user|group) [`']?user'? (?:already exists|in use|exists)/i;
/** An image may have a pipe in place of /etc/passwd. */
const LIMIT_MS = 30_000;
const IS_OF_USER = 'grep -Eqs "^user:[^:]*:$1:" /etc/passwd /etc/group';

/** @param output the end of what the command wrote. @returns what the reason adds; empty: it failed for another one */
export async function takenUser(output: string, buildContainer: BuildContainer, signal: AbortSignal): Promise<string> {
  if (TAKEN_NAME.test(output))
    return "; the platform adds the user 'user', with the home /home/user, to every image: leave out the command that adds it";
  const number = TAKEN_NUMBER.exec(output)?.[1];
  if (number === undefined) return "";
  const script = rootScript(IS_OF_USER, number);
  const isOfUser = await within(LIMIT_MS, (limit) =>
    buildContainer.run(script, () => undefined, AbortSignal.any([signal, limit])),
  ).then(
    ({ exitCode }) => exitCode === 0,
    () => {
      signal.throwIfAborted();
      // The command's own failure is the reason.
      return false;
    },
  );
  if (!isOfUser) return "";
  return (
    `; the platform adds the user 'user' with the number ${number} to every image: write USER user in place of another user, ` +
    "leave out the number, or share it with 'useradd -o' and 'groupadd -o'"
  );
}
