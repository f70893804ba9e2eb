/** The sandbox's identity from /init: token, user, environment. Replaced as a whole, never merged. */

import { statSync } from "node:fs";
import { posix } from "node:path";
import { AppError } from "../../shared/http/errors.ts";
import { isFileNow } from "../system/disk.ts";
import { canonicalPath, onDisk } from "../system/file-names.ts";
import { resolvePath } from "../system/paths.ts";
import type { User, Users } from "../system/users.ts";

/** PATH of commands when neither the image nor the client sets one. */
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export interface Settings {
  /** Empty until the first /init: every request passes until then. */
  readonly accessToken: string | undefined;
  readonly envVars: Readonly<Record<string, string>>;
  /** Of the company's network: every other variable wins, in whatever case its name is. */
  readonly networkVariables: Readonly<Record<string, string>>;
  readonly defaultUser: string | undefined;
  readonly defaultWorkdir: string | undefined;
  readonly sandboxId: string | undefined;
  readonly templateId: string | undefined;
  readonly executionId: string | undefined;
}

export const NO_SETTINGS: Settings = {
  accessToken: undefined,
  envVars: {},
  networkVariables: {},
  defaultUser: undefined,
  defaultWorkdir: undefined,
  sandboxId: undefined,
  templateId: undefined,
  executionId: undefined,
};

/** What commands inherit from the image: without LANG programs write no character beyond ASCII. */
interface ImageVariables {
  readonly path: string | undefined;
  readonly language: string | undefined;
}

export class Session {
  readonly #users: Users;
  readonly #image: Readonly<Record<string, string>>;
  #settings: Settings = NO_SETTINGS;
  #certificateVariables: Readonly<Record<string, string>> = {};

  /** @param image its PATH and LANG, for commands */
  constructor(users: Users, { path, language }: ImageVariables) {
    this.#users = users;
    this.#image = { PATH: isSet(path) ? path : DEFAULT_PATH, ...(isSet(language) ? { LANG: language } : {}) };
  }

  get settings(): Settings {
    return this.#settings;
  }

  apply(settings: Settings): void {
    this.#settings = settings;
  }

  /** Paths of the certificates, in variables of all later commands. */
  trust(variables: Readonly<Record<string, string>>): void {
    this.#certificateVariables = variables;
  }

  /**
   * The user a request names, or the default one: of /init, else `user`, else root in an image that has no `user`.
   * @throws {AppError} unauthorized for a name the image does not know
   */
  user(name: string | undefined): User {
    if (name !== undefined && name !== "") return this.#users.get(name);
    const { defaultUser } = this.#settings;
    if (defaultUser !== undefined && defaultUser !== "") return this.#users.get(defaultUser);
    const user = this.#users.find("user") ?? this.#users.find("root");
    if (user === undefined) throw new AppError("unauthorized", "no user specified");
    return user;
  }

  /** Absolute form of a client's path. @throws {AppError} bad_request for a path that no file can have */
  path(path: string, user: User): string {
    if (path.includes("\0")) throw new AppError("bad_request", "a path cannot contain a zero byte");
    // Half of a pair of surrogates has no UTF-8; written as something else it would name another file.
    if (/\p{Surrogate}/u.test(path)) throw new AppError("bad_request", "a path must be text that UTF-8 can hold");
    return canonicalPath(resolvePath(path, user, this.#settings.defaultWorkdir));
  }

  /** Work directory of a command. A home that the image lacks must not fail a command that names no directory. */
  workingDirectory(cwd: string | undefined, user: User): string {
    const path = this.path(cwd ?? "", user);
    const said = (cwd !== undefined && cwd !== "") || this.#settings.defaultWorkdir !== undefined;
    return said || statSync(onDisk(path), { throwIfNoEntry: false })?.isDirectory() === true ? path : "/";
  }

  /** The answer of GET /envs: what every command has beside its user's own and its request's variables. */
  globalVariables(): Record<string, string> {
    return this.#withNetwork(this.#ownVariables());
  }

  /** The environment of one command. Nothing of envd's own environment is in it; the request's variables win. */
  environment(user: User, requested: Readonly<Record<string, string>>): Record<string, string> {
    const shell = loginShell(user);
    const base = { ...this.#image, ...shell, HOME: user.home, USER: user.name, LOGNAME: user.name };
    return { ...base, ...this.#withNetwork({ ...this.#ownVariables(), ...requested }) };
  }

  /** The variables of /init and the platform's own. */
  #ownVariables(): Record<string, string> {
    return { ...this.#settings.envVars, ...this.#platformVariables() };
  }

  #withNetwork(own: Readonly<Record<string, string>>): Record<string, string> {
    return { ...this.#certificateVariables, ...unlessSet(this.#settings.networkVariables, own), ...own };
  }

  #platformVariables(): Record<string, string> {
    const { sandboxId, templateId } = this.#settings;
    const variables: Record<string, string> = { E2B_SANDBOX: "true", SVC_SANDBOX: "true" };
    if (sandboxId !== undefined) Object.assign(variables, { E2B_SANDBOX_ID: sandboxId, SVC_SANDBOX_ID: sandboxId });
    if (templateId !== undefined)
      Object.assign(variables, { E2B_TEMPLATE_ID: templateId, SVC_TEMPLATE_ID: templateId });
    return variables;
  }
}

/** What a database names for users who do not log in. */
const NO_SHELLS = new Set(["nologin", "false", "true", "sync", "halt", "shutdown"]);

/** As a login sets it: pnpm, fnm and erlexec fail without SHELL, and a shell sets it for itself alone. */
function loginShell({ shell }: User): Record<string, string> {
  const usable = shell?.startsWith("/") === true && !NO_SHELLS.has(posix.basename(shell)) && isFileNow(shell);
  return usable ? { SHELL: shell } : {};
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== "";
}

/** Programs read `HTTP_PROXY` or `http_proxy` first: whoever sets one of them means both. */
function unlessSet(
  variables: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  const set = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !set.has(name.toLowerCase())));
}
