/** Works on the files of a volume by `svc-volume-files`, one process for each request; content is streamed. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, type Writable } from "node:stream";
import { pipeline as piped } from "node:stream/promises";
import { CONTENT_WAIT_MS } from "../../shared/agent-api/volume-shapes.ts";
import { AppError, catalogue, type ErrorCode } from "../../shared/http/errors.ts";
import { within } from "../../shared/program/deadline.ts";
import { createSemaphore } from "../../shared/program/semaphore.ts";
import type { Volumes } from "./volumes.ts";

/** Requests at a time on this node, and for one volume: one with slow clients leaves turns to others. */
const AT_ONCE = 32;
const AT_ONCE_PER_VOLUME = 8;
const MOST_HEAD_BYTES = 64 * 1024;
const MOST_COMPLAINT = 2_000;

interface Metadata {
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  readonly mode?: number | undefined;
}

interface Making extends Metadata {
  readonly force?: boolean | undefined;
}

/** `path` is below the volume's root, without a slash at its start; an empty one is the root. */
export interface VolumeFiles {
  /** Requests that a program works on, or that wait for their turn. */
  readonly open: number;
  stat(id: string, path: string): Promise<unknown>;
  change(id: string, path: string, metadata: Metadata): Promise<unknown>;
  /** Directories with all that is in them. */
  remove(id: string, path: string): Promise<void>;
  /** The entries as a JSON array, as they come. */
  list(id: string, path: string, depth: number): Promise<Readable>;
  makeDirectory(id: string, path: string, making: Making): Promise<unknown>;
  read(id: string, path: string): Promise<{ readonly size: number; readonly content: Readable }>;
  /** The file has its old content until the new one is complete and on the disk. */
  write(id: string, path: string, making: Making, content: Readable): Promise<unknown>;
}

interface VolumeFilesDeps {
  readonly volumes: Pick<Volumes, "open">;
  /** Path of `svc-volume-files`. */
  readonly program: () => Promise<string>;
}

interface Running {
  readonly child: ChildProcess;
  readonly output: Readable;
  readonly ended: Promise<unknown>;
  readonly complaint: () => string;
  readonly release: () => void;
}

export function createVolumeFiles({ volumes, program }: VolumeFilesDeps): VolumeFiles {
  const built = { program: undefined as Promise<string> | undefined };
  const turns = createSemaphore(AT_ONCE, AT_ONCE_PER_VOLUME);

  const take = (id: string) =>
    within(CONTENT_WAIT_MS, (limit) => turns.take(limit, id)).catch((cause: unknown) => {
      throw new AppError("node_busy", "the node works on as many files of volumes as it may: try again", { cause });
    });

  const start = async (id: string, args: readonly string[], writes = false): Promise<Running> => {
    const release = await take(id);
    try {
      const input = writes ? "pipe" : "ignore";
      const child = spawn(await (built.program ??= program()), [await volumes.open(id), ...args], {
        stdio: [input, "pipe", "pipe", input],
        env: {},
      });
      const ended = once(child, "close").then(
        ([code]) => code as unknown,
        (error: unknown) => error,
      );
      void ended.finally(release);
      let complaint = "";
      child.stderr?.on("data", (chunk: Buffer) => (complaint = (complaint + chunk.toString()).slice(-MOST_COMPLAINT)));
      return { child, output: child.stdout as Readable, ended, complaint: () => complaint, release };
    } catch (error) {
      release();
      throw error;
    }
  };

  /** Output after the first line, which is read. The stream fails when the program does. */
  const rest = ({ child, output, ended, complaint }: Running): Readable => {
    async function* whole() {
      for await (const chunk of output) yield chunk as Buffer;
      if ((await ended) !== 0) throw failed(complaint());
    }
    return Readable.from(whole(), { objectMode: false }).once("close", () => child.kill("SIGKILL"));
  };

  const streamed = async (id: string, ...args: readonly string[]) => {
    const running = await start(id, args);
    try {
      const head = await answerOf(running);
      return { head, content: rest(running) };
    } catch (error) {
      running.child.kill("SIGKILL");
      running.output.resume();
      throw error;
    }
  };

  const asked = async (id: string, ...args: readonly string[]) => {
    const { head, content } = await streamed(id, ...args);
    content.resume();
    await once(content, "end");
    return head["entry"];
  };

  return {
    get open() {
      return turns.busy + turns.waiting;
    },
    stat: (id, path) => asked(id, "stat", path),
    change: (id, path, metadata) => asked(id, "change", path, ...numbers(metadata)),
    async remove(id, path) {
      await asked(id, "remove", path);
    },
    list: async (id, path, depth) => (await streamed(id, "list", path, String(depth))).content,
    makeDirectory: (id, path, making) => asked(id, "make", path, ...numbers(making), making.force === true ? "1" : "0"),
    async read(id, path) {
      const { head, content } = await streamed(id, "read", path);
      return { size: Number(head["size"]), content };
    },

    async write(id, path, making, content) {
      const running = await start(id, ["write", path, ...numbers(making), making.force === true ? "1" : "0"], true);
      const { child, output } = running;
      const [input, , , commit] = child.stdio as unknown as [Writable, Readable, Readable, Writable];
      commit.on("error", () => undefined);
      try {
        const answered = answerOf(running);
        answered.catch(() => undefined);
        // A refusal comes before the content has been read; its end is then no failure of the upload.
        const sent = piped(content, input).then(() => commit.end("c"));
        const over = answered.then(() => undefined);
        await Promise.race([sent, over]).catch(async (error: unknown) => {
          // The program reads no more: it has refused. Anything else is an upload that was cut.
          if (isClosed(error) || child.exitCode !== null) return answered;
          throw error instanceof AppError ? error : new AppError("bad_request", "the upload was cut", { cause: error });
        });
        const head = await answered;
        output.resume();
        const code = await running.ended;
        if (code !== 0) throw failed(running.complaint());
        return head["entry"];
      } finally {
        commit.destroy();
        child.kill("SIGKILL");
        output.resume();
      }
    },
  };
}

function numbers({ uid, gid, mode }: Metadata): string[] {
  return [uid, gid, mode].map((value) => (value === undefined ? "-" : String(value)));
}

function isClosed(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EPIPE";
}

/** The first line. @throws {AppError} the program's refusal */
async function answerOf({ output, ended, complaint }: Running): Promise<Readonly<Record<string, unknown>>> {
  const line = await firstLine(output);
  if (line === undefined) {
    await ended;
    throw failed(complaint());
  }
  const answer = JSON.parse(line) as Record<string, unknown>;
  const { error, message } = answer;
  if (typeof error !== "string") return answer;
  if (!Object.hasOwn(catalogue, error)) throw failed(line);
  throw new AppError(error as ErrorCode, String(message));
}

function failed(complaint: string): AppError {
  return new AppError("internal", "the files of the volume could not be read or written", {
    cause: new Error(complaint),
  });
}

/** Undefined: the output ended before. What comes after the line stays in the stream. */
function firstLine(output: Readable): Promise<string | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const finish = (line: string | undefined) => {
      output.off("readable", look).off("end", ended).off("error", ended);
      resolve(line);
    };
    const ended = () => finish(undefined);
    const look = () => {
      for (;;) {
        const chunk = output.read() as Buffer | null;
        if (chunk === null) return;
        const end = chunk.indexOf("\n");
        chunks.push(end < 0 ? chunk : chunk.subarray(0, end));
        if (chunks.reduce((sum, { length }) => sum + length, 0) > MOST_HEAD_BYTES) return ended();
        if (end < 0) continue;
        if (end + 1 < chunk.length) output.unshift(chunk.subarray(end + 1));
        return finish(Buffer.concat(chunks).toString());
      }
    };
    output.on("readable", look).once("end", ended).once("error", ended);
  });
}
