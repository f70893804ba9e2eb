/**
 * Settings that a program gets as files of its own, not in its environment, which children inherit: those of systemd's
 * `LoadCredential=`, or of `supervise` where there is no systemd. They are read once, at the start.
 */

import { join } from "node:path";
import { ConfigError } from "../config.ts";
import { contentOf } from "../private-files.ts";
import { settingsIn } from "./settings-lines.ts";

/** The settings that `up` makes, and over them the operator's own. */
const CREDENTIALS = ["settings", "own-settings"];

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment, and over it the settings of the credentials.
 * @throws {ConfigError} for a credential that is there and cannot be read
 */
export function withCredentials(environment: Environment): Record<string, string | undefined> {
  const { CREDENTIALS_DIRECTORY: directory, ...others } = environment;
  if (directory === undefined || directory === "") return others;
  return Object.assign(others, ...CREDENTIALS.map((name) => settingsIn(textOf(join(directory, name)))));
}

function textOf(path: string): string {
  try {
    return contentOf(path) ?? "";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "an error";
    throw new ConfigError([`the settings in ${path} cannot be read: ${code}`]);
  }
}
