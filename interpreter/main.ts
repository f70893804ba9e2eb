/** The code interpreter: without an argument the supervisor in the foreground, with `serve` the server that it starts. */

import { once } from "node:events";
import { realpathSync } from "node:fs";
import { connect } from "node:net";
import { userInfo } from "node:os";
import { dirname } from "node:path";
import { supervise } from "./supervise/supervisor.ts";

const DEFAULT_PORT = 49_999;
const CONNECT_MS = 1_000;

const log = (level: "info" | "error", message: string) => {
  const line = JSON.stringify({ level, time: new Date().toISOString(), component: "interpreter", message });
  (level === "error" ? console.error : console.info)(line);
};

const { SVC_INTERPRETER_PORT, SVC_INTERPRETER_ENVD, SVC_INTERPRETER_HOME, SVC_INTERPRETER_RUNTIME } = process.env;
const [, program = "", command] = process.argv;
const port = SVC_INTERPRETER_PORT === undefined ? DEFAULT_PORT : Number(SVC_INTERPRETER_PORT);

/** What kernels inherit: the start command's variables without the server's own, and the home of the user. */
function environment(): Record<string, string> {
  const { username, homedir } = userInfo();
  const inherited = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !entry[0].startsWith("SVC_INTERPRETER_"),
  );
  return { ...Object.fromEntries(inherited), HOME: homedir, USER: username, LOGNAME: username };
}

async function serve(): Promise<void> {
  // Only here: the supervisor stays small.
  const { startInterpreter } = await import("./app.ts");
  const interpreter = await startInterpreter({
    port,
    envd: SVC_INTERPRETER_ENVD ?? "http://127.0.0.1:49983",
    identityFiles: ["/run/svc/.SVC_SANDBOX_ID", "/run/svc/execution-id"],
    runtime: SVC_INTERPRETER_RUNTIME ?? "/run/svc-interpreter",
    home: SVC_INTERPRETER_HOME ?? "/home/user",
    folder: dirname(realpathSync(program)),
    node: process.execPath,
    environment: environment(),
    log,
  });
  const stop = () => void interpreter.stop().finally(() => process.exit(0));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

/** Connects only: a server that is busy accepts and answers late. */
async function isListening(): Promise<boolean> {
  const socket = connect({ host: "127.0.0.1", port });
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(CONNECT_MS) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

if (command === "serve") {
  serve().catch((error: unknown) => {
    log("error", `the server cannot start: ${error instanceof Error ? error.message : "unknown reason"}`);
    process.exit(1);
  });
} else {
  const supervisor = supervise({ command: [process.execPath, program, "serve"], another: isListening, log });
  const stop = () => void supervisor.stop("SIGTERM").finally(() => process.exit(0));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}
