/** The tools that an agent's host gets. What comes out of a sandbox is text for a model, and no instruction to this program. */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { FileType } from "../../shared/envd-rpc/gen/filesystem_pb.js";
import { VERSION } from "../../shared/version.ts";
import type { Context } from "../context.ts";
import { Failure } from "../failure.ts";
import { readSmall, type Transfer, writeSmall } from "../inside/files.ts";
import { type Inside, insideFailure } from "../inside/sandbox.ts";
import type { OwnSandboxes } from "./own-sandboxes.ts";
import { type Program, type Ran, runProgram } from "./run.ts";

const LARGEST_FILE = 2 ** 20;
const LONGEST_LIST = 500;

/** Each reads its program from standard input. */
const LANGUAGES = {
  python: ["python3", "-"],
  javascript: ["node", "-"],
  bash: ["bash", "-s"],
} as const;

const sandboxId = z.string().min(1).max(64).describe("Id of a sandbox, as create_sandbox returned it");
const path = z.string().min(1).max(4096).describe("Absolute, or below the home directory");
const seconds = z.number().int().min(1).max(3600).default(120).describe("The program is ended after this time");
const cwd = z.string().max(4096).optional().describe("Directory that it runs in; the home directory without it");

/** What a tool needs around its handler: the answer to a failure is a result that the model can read. */
type Tool<Input> = (input: Input, more: { readonly signal: AbortSignal }) => Promise<CallToolResult>;

export function createMcpServer(context: Context, sandboxes: OwnSandboxes): McpServer {
  const server = new McpServer({ name: "svc", version: VERSION });

  async function within<T>(id: string, work: (inside: Inside) => Promise<T>): Promise<T> {
    const inside = await sandboxes.enter(id);
    try {
      return await work(inside);
    } catch (error) {
      throw insideFailure(error, id);
    }
  }
  const files = (inside: Inside): Transfer => ({ context, inside, user: undefined, passed: () => undefined });

  server.registerTool(
    "create_sandbox",
    {
      description: "Start a sandbox: a Linux machine of its own with Python, Node and a shell. Returns its id.",
      inputSchema: {
        template: z.string().min(1).max(256).default("base").describe("What it starts from"),
        internet: z.boolean().default(true).describe("Whether it reaches the internet"),
        env: z.record(z.string(), z.string()).default({}).describe("Environment of its programs"),
      },
    },
    answered(async (wanted) => text(await sandboxes.create(wanted))),
  );
  server.registerTool(
    "list_sandboxes",
    { description: "The sandboxes that this server has started and that have not ended.", inputSchema: {} },
    answered(async () => text(JSON.stringify(await sandboxes.list()))),
  );
  server.registerTool(
    "run_command",
    {
      description: "Run a shell command in a sandbox, and return its exit code and what it wrote.",
      inputSchema: { sandbox_id: sandboxId, command: z.string().min(1), cwd, timeout_seconds: seconds },
    },
    answered(({ sandbox_id, command, cwd: directory, timeout_seconds }, { signal }) =>
      within(sandbox_id, async (inside) => {
        const args = ["-l", "-c", command];
        const timeoutMs = timeout_seconds * 1000;
        return ran(await runProgram(inside, { cmd: "/bin/bash", args, cwd: directory, timeoutMs }, signal));
      }),
    ),
  );
  server.registerTool(
    "run_code",
    {
      description:
        "Run a program in a sandbox. Each run is a process of its own: nothing but files is kept between two.",
      inputSchema: {
        sandbox_id: sandboxId,
        language: z.enum(["python", "javascript", "bash"]).default("python"),
        code: z.string().min(1).max(LARGEST_FILE),
        cwd,
        timeout_seconds: seconds,
      },
    },
    answered(({ sandbox_id, language, code, cwd: directory, timeout_seconds }, { signal }) =>
      within(sandbox_id, async (inside) => {
        const [cmd, ...args] = LANGUAGES[language];
        const program: Program = { cmd, args, cwd: directory, input: code, timeoutMs: timeout_seconds * 1000 };
        return ran(await runProgram(inside, program, signal));
      }),
    ),
  );
  server.registerTool(
    "read_file",
    {
      description: "Read a file of a sandbox, up to 1 MiB. One that is not text comes as base64.",
      inputSchema: { sandbox_id: sandboxId, path },
    },
    answered(({ sandbox_id, path: from }) =>
      within(sandbox_id, async (inside) => text(...shown(await readSmall(files(inside), from, LARGEST_FILE)))),
    ),
  );
  server.registerTool(
    "write_file",
    {
      description: "Write a text file in a sandbox; its folders are made, and a file of that name is replaced.",
      inputSchema: { sandbox_id: sandboxId, path, content: z.string().max(LARGEST_FILE) },
    },
    answered(({ sandbox_id, path: to, content }) =>
      within(sandbox_id, async (inside) => {
        const data = Buffer.from(content);
        await writeSmall(files(inside), to, data);
        return text(`${data.length} bytes written to ${to}`);
      }),
    ),
  );
  server.registerTool(
    "list_files",
    {
      description: "List a folder of a sandbox: type, size and path of each entry.",
      inputSchema: { sandbox_id: sandboxId, path, depth: z.number().int().min(1).max(5).default(1) },
    },
    answered(({ sandbox_id, path: of, depth }, { signal }) =>
      within(sandbox_id, async (inside) => {
        const { entries } = await inside.filesystem.listDir({ path: of, depth }, inside.as(undefined, { signal }));
        const lines = entries.map(
          ({ type, size, path: at }) => `${type === FileType.DIRECTORY ? "dir" : "file"} ${size} ${at}`,
        );
        const more = lines.length - LONGEST_LIST;
        return text(...lines.slice(0, LONGEST_LIST), ...(more > 0 ? [`… and ${more} more`] : []));
      }),
    ),
  );
  server.registerTool(
    "fork_sandbox",
    {
      description: "Copy a running sandbox with its memory, processes and files. Returns the ids of the copies.",
      inputSchema: { sandbox_id: sandboxId, count: z.number().int().min(1).max(10).default(1) },
    },
    answered(async ({ sandbox_id, count }) => {
      const { ids, errors } = await sandboxes.fork(sandbox_id, count);
      return { ...text(...ids, ...errors), isError: ids.length === 0 };
    }),
  );
  server.registerTool(
    "snapshot_sandbox",
    {
      description:
        "Keep the memory, processes and files of a running sandbox as they are now, for rewind_sandbox. Returns the snapshot's id.",
      inputSchema: { sandbox_id: sandboxId },
    },
    answered(async ({ sandbox_id }) => text(await sandboxes.snapshot(sandbox_id))),
  );
  server.registerTool(
    "rewind_sandbox",
    {
      description: "Take a sandbox back to a snapshot of it. What it has done since then is lost; its id stays.",
      inputSchema: {
        sandbox_id: sandboxId,
        snapshot_id: z.string().min(1).max(128).describe("As snapshot_sandbox returned it"),
      },
    },
    answered(async ({ sandbox_id, snapshot_id }) => {
      await sandboxes.rewind(sandbox_id, snapshot_id);
      return text(`sandbox ${sandbox_id} is as it was at ${snapshot_id}`);
    }),
  );
  server.registerTool(
    "kill_sandbox",
    {
      description: "End a sandbox and delete what is in it, and the snapshots that snapshot_sandbox took of it.",
      inputSchema: { sandbox_id: sandboxId },
    },
    answered(async ({ sandbox_id }) => {
      const stay = await sandboxes.kill(sandbox_id);
      return text(`sandbox ${sandbox_id} is killed`, ...stay);
    }),
  );
  return server;
}

function answered<Input>(tool: Tool<Input>): Tool<Input> {
  return async (input, more) => {
    try {
      return await tool(input, more);
    } catch (error) {
      const { message } = error instanceof Error ? error : new Error(String(error));
      const wayOut = error instanceof Failure ? error.wayOut : undefined;
      return { ...text(message, ...(wayOut === undefined ? [] : [wayOut])), isError: true };
    }
  };
}

function text(...lines: readonly string[]): CallToolResult {
  return { content: [{ type: "text", text: lines.join("\n") }] };
}

function ran({ exitCode, status, stdout, stderr }: Ran): CallToolResult {
  const outcome = exitCode === undefined ? status : `exit code ${exitCode}`;
  const parts = [outcome, ...(stdout === "" ? [] : ["stdout:", stdout]), ...(stderr === "" ? [] : ["stderr:", stderr])];
  return { ...text(...parts), isError: exitCode !== 0 };
}

function shown(data: Buffer): readonly string[] {
  try {
    return [new TextDecoder("utf-8", { fatal: true }).decode(data)];
  } catch {
    return ["base64:", data.toString("base64")];
  }
}
