/** Pure: checks a request to start a process and converts it for svc-exec; converts svc-exec's refusals to errors. */

import { AppError } from "../../shared/http/errors.ts";
import type { Limits } from "../runtime/own-limits.ts";
import type { SpawnPlan } from "../system/system.ts";
import { SystemError } from "../system/system.ts";
import type { User } from "../system/users.ts";
import type { ProcessConfig } from "./process.ts";

export interface StartRequest {
  readonly config: ProcessConfig;
  readonly user: User;
  /** Absolute. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly terminal: { readonly cols: number; readonly rows: number } | undefined;
  readonly stdin: boolean;
}

/** Terminal settings when the client names none. */
const DEFAULT_SIZE = { cols: 80, rows: 24 };
const LARGEST_SIZE = 0xffff;

/** @throws {AppError} bad_request for what no program can be given */
export function planSpawn(
  { config, user, cwd, environment, terminal, stdin }: StartRequest,
  limits: Limits,
): SpawnPlan {
  if (config.cmd === "") throw new AppError("bad_request", "the command is empty");
  const argv = [config.cmd, ...config.args];
  if (argv.some(hasZero) || hasZero(cwd)) throw new AppError("bad_request", "a command cannot contain a zero byte");
  const env = Object.entries(environment).map(([name, value]) => {
    if (name === "" || name.includes("=") || hasZero(name) || hasZero(value))
      throw new AppError("bad_request", `environment variable '${printable(name)}' is not valid`);
    return `${name}=${value}`;
  });
  const { uid, gid, groups } = user;
  const size = terminal === undefined ? undefined : terminalSize(terminal.cols, terminal.rows);
  return { argv, env, cwd, uid, gid, groups, ...limits, terminal: size, stdin: stdin || terminal !== undefined };
}

/** Zero means absent. @throws {AppError} bad_request for a size that no terminal has */
export function terminalSize(cols: number, rows: number): { cols: number; rows: number } {
  if (cols > LARGEST_SIZE || rows > LARGEST_SIZE)
    throw new AppError("bad_request", `terminal size ${cols}x${rows} is larger than ${LARGEST_SIZE}x${LARGEST_SIZE}`);
  return { cols: cols === 0 ? DEFAULT_SIZE.cols : cols, rows: rows === 0 ? DEFAULT_SIZE.rows : rows };
}

function hasZero(text: string): boolean {
  return text.includes("\0");
}

function printable(name: string): string {
  return name.slice(0, 100).replaceAll("\0", "\\0");
}

/** Lack of a resource: the same request can succeed later. */
const EXHAUSTED = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ENOSPC"]);

/** The kernel does not say which of both limits it was: 32 pages for one text, and a quarter of the stack for all. */
const TOO_LONG =
  "arguments and environment are too long: the kernel takes at most 128 KiB in one argument (a whole shell command is one) " +
  "or variable: write long text to a file, or send it to stdin";

/** Why a start failed, for the client. @param isThere whether the command is the path of a file; asked where nothing was found */
export function startError(reason: unknown, cmd: string, cwd: string, isThere = (): boolean => false): unknown {
  if (!(reason instanceof SystemError)) return reason;
  const options = { cause: reason };
  if (EXHAUSTED.has(reason.errno))
    return new AppError(
      "resource_exhausted",
      `the sandbox has no resources for another process (${reason.errno})`,
      options,
    );
  switch (reason.step) {
    case "cwd":
      return new AppError("bad_request", cwdMessage(reason.errno, cwd), options);
    case "exec":
      return execError(reason, cmd, isThere);
    case "user":
      return new AppError("forbidden", `the sandbox may not become this user (${reason.errno})`, options);
    case "call":
    case "fork":
    case "resources":
    case "terminal":
      return new AppError("internal", `process could not be started: ${reason.message}`, options);
  }
}

function cwdMessage(errno: string, cwd: string): string {
  if (errno === "ENOENT") return `cwd '${cwd}' does not exist`;
  if (errno === "ENOTDIR") return `cwd '${cwd}' is not a directory`;
  return errno === "EACCES" ? `cwd '${cwd}': permission denied` : `cwd '${cwd}' cannot be entered (${errno})`;
}

function execError(reason: SystemError, cmd: string, isThere: () => boolean): AppError {
  const options = { cause: reason };
  const name = cmd.slice(0, 200);
  switch (reason.errno) {
    case "ENOENT":
    case "ENOTDIR":
      return new AppError("not_found", isThere() ? noInterpreter(name) : `executable '${name}' not found`, options);
    case "EACCES":
    case "EPERM":
      return new AppError("bad_request", `executable '${name}': permission denied`, options);
    case "E2BIG":
      return new AppError("bad_request", TOO_LONG, options);
    default:
      return new AppError("bad_request", `executable '${name}' cannot be run (${reason.errno})`, options);
  }
}

/** The kernel names no cause. In a script from Windows the carriage return is the last letter of the interpreter's name. */
function noInterpreter(name: string): string {
  return `executable '${name}' is there, but not the interpreter that it names: with CR LF at its end the first line names another one`;
}
