/**
 * A Jupyter kernel for tests of the code interpreter: the real wire protocol over ipc, and in place of Python a language of
 * a few words, one a line. Started as `python3 launch.py -f CONNECTION_FILE` would be.
 */

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { Publisher, Router } from "zeromq";

interface Connection {
  readonly ip: string;
  readonly key: string;
}

type Json = Record<string, unknown>;

const connection = JSON.parse(readFileSync(process.argv.at(-1) ?? "", "utf8")) as Connection;
const address = (port: number) => `ipc://${connection.ip}-${port}`;
const shell = new Router();
// As a kernel that keeps all of its output until the server takes it.
const iopub = new Publisher({ sendHighWaterMark: 0 });

let executions = 0;
let messages = 0;
let reseeds = 0;
let payload: object[] = [];
let interrupted: () => void = () => undefined;
process.on("SIGINT", () => interrupted());

// Sockets alone do not keep a process.
setInterval(() => undefined, 60_000);

class Failed extends Error {
  override readonly name = "Failed";
  readonly ename: string;

  constructor(ename: string, evalue: string) {
    super(evalue);
    this.ename = ename;
  }
}

function frames(type: string, parent: Json, content: object | string): string[] {
  messages += 1;
  const header = { msg_id: `k${messages}`, msg_type: type, session: "k", username: "k", version: "5.3" };
  const parts = [{ ...header, date: new Date().toISOString() }, parent, {}].map((part) => JSON.stringify(part));
  parts.push(typeof content === "string" ? content : JSON.stringify(content));
  const hmac = createHmac("sha256", connection.key);
  for (const part of parts) hmac.update(part);
  return ["<IDS|MSG>", hmac.digest("hex"), ...parts];
}

const publish = (type: string, parent: Json, content: object | string) =>
  iopub.send([type, ...frames(type, parent, content)]);

type Word = (argument: string, parent: Json) => Promise<void> | void;

const printed = (text: string, parent: Json) => publish("stream", parent, { name: "stdout", text });

const words: Readonly<Record<string, Word>> = {
  print: (argument, parent) => printed(`${argument}\n`, parent),
  flood: async (argument, parent) => {
    for (let left = Number(argument); left > 0; left -= 1) await printed(`${"x".repeat(99_999)}\n`, parent);
  },
  value: (data, parent) => publish("execute_result", parent, `{"execution_count":1,"metadata":{},"data":${data}}`),
  show: (data, parent) => publish("display_data", parent, `{"metadata":{},"data":${data}}`),
  env: (name, parent) => printed(`${process.env[name] ?? "none"}\n`, parent),
  cwd: (_none, parent) => printed(`${process.cwd()}\n`, parent),
  pid: (_none, parent) => printed(`${process.pid}\n`, parent),
  reseeds: (_none, parent) => printed(`${reseeds}\n`, parent),
  raise: (argument) => {
    throw new Failed("ValueError", argument);
  },
  sleep: async () => {
    await new Promise<void>((_resolve, reject) => {
      interrupted = () => reject(new Failed("KeyboardInterrupt", ""));
    });
  },
  die: () => void process.kill(process.pid, "SIGKILL"),
  exit: (argument) => process.exit(Number(argument)),
  // As `exit()` of IPython: the reply says it, and the kernel takes a moment.
  leave: (argument) => {
    payload = [{ source: "ask_exit", keepkernel: argument === "kept" }];
    if (argument === "soon") setTimeout(() => process.exit(0), 100);
  },
};

async function perform(line: string, parent: Json): Promise<void> {
  const [word = "", ...rest] = line.split(" ");
  await words[word]?.(rest.join(" "), parent);
}

/** `__import__("svc_kernel").refresh('…')`, which is what the server sends silently. */
function refresh(code: string): void {
  const text = /refresh\((.*)\)$/s.exec(code)?.[1];
  if (text === undefined) throw new Failed("SyntaxError", "no refresh");
  const change = JSON.parse(JSON.parse(text) as string) as {
    set: Record<string, string>;
    remove: string[];
    reseed: boolean;
  };
  Object.assign(process.env, change.set);
  for (const name of change.remove) delete process.env[name];
  if (change.reseed) reseeds += 1;
}

async function execute(parent: Json, { code, silent }: { code: string; silent: boolean }): Promise<object> {
  try {
    if (silent) refresh(code);
    else {
      executions += 1;
      await publish("execute_input", parent, { code, execution_count: executions });
      for (const line of code.split("\n")) await perform(line, parent);
    }
    const said = payload;
    payload = [];
    return { status: "ok", execution_count: executions, payload: said };
  } catch (error) {
    const { ename, message } = error instanceof Failed ? error : new Failed("Error", String(error));
    const content = { ename, evalue: message, traceback: [`${ename}: `, message] };
    if (!silent) await publish("error", parent, content);
    return { status: "error", execution_count: executions, ...content };
  }
}

await iopub.bind(address(2));
await shell.bind(address(1));
for await (const [identity = Buffer.alloc(0), , , header, , , content] of shell) {
  const parent = JSON.parse(String(header)) as Json;
  await publish("status", parent, { execution_state: "busy" });
  const asked = JSON.parse(String(content)) as { code: string; silent: boolean };
  const reply =
    parent["msg_type"] === "execute_request" ? await execute(parent, asked) : { status: "ok", protocol_version: "5.3" };
  const type = String(parent["msg_type"]).replace("_request", "_reply");
  await shell.send([identity, ...frames(type, parent, reply)]);
  await publish("status", parent, { execution_state: "idle" });
}
