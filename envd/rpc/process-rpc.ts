/** The `process.Process` service: converts messages to calls of the process table and results to messages. */

import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
  type ProcessInput,
  type ProcessSelector,
  type Process as ProcessService,
  Signal,
} from "../../shared/envd-rpc/gen/process_pb.js";
import { AppError } from "../../shared/http/errors.ts";
import type { Session } from "../init/session.ts";
import type { Process } from "../process/process.ts";
import { endEvent, processEvents, startEvent } from "../process/process-events.ts";
import { hasEnded, type ProcessTable, processNotFound, type Selector } from "../process/process-table.ts";
import { terminalSize } from "../process/start-plan.ts";
import { callerName } from "./caller.ts";
import { keepaliveMs } from "./keepalive.ts";

export interface ProcessDeps {
  readonly session: Session;
  readonly table: ProcessTable;
}

export function processService({ session, table }: ProcessDeps): ServiceImpl<typeof ProcessService> {
  return {
    list() {
      const processes = table.list().map(({ config, pid, tag }) => ({
        config: { cmd: config.cmd, args: [...config.args], envs: { ...config.envs }, ...optional("cwd", config.cwd) },
        pid,
        ...optional("tag", tag),
      }));
      return { processes };
    },

    async *start(request, context) {
      const { process: wanted, pty, tag, stdin } = request;
      if (wanted === undefined) throw new AppError("bad_request", "no process given");
      const user = session.user(callerName(context));
      const start = {
        config: { cmd: wanted.cmd, args: wanted.args, envs: wanted.envs, cwd: wanted.cwd },
        user,
        cwd: session.workingDirectory(wanted.cwd, user),
        environment: session.environment(user, wanted.envs),
        terminal: pty === undefined ? undefined : { cols: pty.size?.cols ?? 0, rows: pty.size?.rows ?? 0 },
        stdin: stdin ?? true,
      };
      const timeoutMs = context.timeoutMs();
      const deadlineMs = timeoutMs === undefined ? undefined : Math.max(1, timeoutMs);
      const { process, follower } = await table.start(start, { tag, deadlineMs });
      yield* processEvents(process.pid, follower, followOptions(context));
    },

    async *connect(request, context) {
      const selector = toSelector(request.process);
      const process = table.find(selector);
      if (process !== undefined) {
        yield* processEvents(process.pid, process.follow(), followOptions(context));
        return;
      }
      const exited = table.findExited(selector);
      if (exited === undefined) throw processNotFound(selector);
      yield { event: startEvent(exited.pid) };
      yield { event: endEvent(exited.ending) };
    },

    async update(request) {
      const selector = toSelector(request.process);
      const process = table.get(selector);
      const size = request.pty?.size;
      if (size === undefined) return {};
      if (!process.terminal) throw new AppError("bad_request", `process with pid ${process.pid} has no terminal`);
      const { cols, rows } = terminalSize(size.cols, size.rows);
      await process.resize(cols, rows).catch((error: unknown) => {
        throw hasEnded(error) ? processNotFound(selector) : error;
      });
      return {};
    },

    async streamInput(requests) {
      let process: Process | undefined;
      for await (const { event } of requests) {
        switch (event.case) {
          case "start":
            process = table.get(toSelector(event.value.process));
            break;
          case "data":
            if (process === undefined) throw new AppError("bad_request", "the first message must name the process");
            await feed(process, event.value.input);
            break;
          case "keepalive":
          case undefined:
            break;
        }
      }
      return {};
    },

    async sendInput(request) {
      await feed(table.get(toSelector(request.process)), request.input);
      return {};
    },

    async sendSignal(request) {
      const selector = toSelector(request.process);
      const process = table.get(selector);
      if (request.signal !== Signal.SIGKILL && request.signal !== Signal.SIGTERM)
        throw new AppError("not_implemented", `signal ${request.signal} is not supported, only SIGTERM and SIGKILL`);
      if (!(await process.signal(request.signal))) throw processNotFound(selector);
      return {};
    },

    closeStdin(request) {
      const process = table.get(toSelector(request.process));
      if (process.terminal)
        throw new ConnectError("a terminal's input cannot be closed, send Ctrl-D (0x04) instead", Code.Unknown);
      process.closeInput();
      return {};
    },
  };
}

function followOptions(context: HandlerContext) {
  return { keepaliveMs: keepaliveMs(context.requestHeader.get("keepalive-ping-interval")), signal: context.signal };
}

function toSelector(message: ProcessSelector | undefined): Selector {
  const selector = message?.selector;
  switch (selector?.case) {
    case "pid":
      return { pid: selector.value };
    case "tag":
      return { tag: selector.value };
    case undefined:
      throw new AppError("bad_request", "no process selected: give a pid or a tag");
  }
}

async function feed(process: Process, input: ProcessInput | undefined): Promise<void> {
  if (input === undefined) throw new AppError("not_implemented", "no input given: stdin or pty");
  const kind = input.input;
  // Some encoders omit empty bytes.
  if (kind.case === undefined) return;
  if ((kind.case === "pty") !== process.terminal)
    throw new AppError(
      "internal",
      process.terminal ? "the process has a terminal, not stdin" : "the process has no terminal",
    );
  await process.write(kind.value);
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V });
}
