/** Calls over gRPC-Web through the edge, as a public Go client makes them for commands, files and terminals. */

import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Filesystem } from "../../../shared/envd-rpc/gen/filesystem_pb.js";
import { Process } from "../../../shared/envd-rpc/gen/process_pb.js";
import { openPlatform } from "../../support/platform/platform.ts";
import { GRPC_WEB_FORMS, type GrpcWebForm, grpcWebTransport } from "../../support/sandbox/grpc-web.ts";
import { targetOf } from "../../support/sandbox/sandbox-host.ts";
import { ownSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();

function transportOf(sandboxId: string, token: string, form: GrpcWebForm = "application/grpc-web+proto") {
  const headers = { "e2b-sandbox-id": sandboxId, "e2b-sandbox-port": "49983", "x-access-token": token };
  return grpcWebTransport(platform.sandboxUrl, form, headers);
}

test.each(GRPC_WEB_FORMS)("commands and files work in %s", async (form) => {
  const sandbox = await ownSandbox();
  const { envdAccessToken } = await targetOf(platform, sandbox.sandboxId);
  const transport = transportOf(sandbox.sandboxId, envdAccessToken, form);
  const filesystem = createClient(Filesystem, transport);
  const made = await filesystem.makeDir({ path: "made" });
  expect(made.entry?.path).toBe("/home/user/made");
  await expect(filesystem.stat({ path: "nothing" })).rejects.toMatchObject({ code: Code.NotFound });
  const events = [];
  const command = { cmd: "/bin/bash", args: ["-c", "echo out; exit 4"], envs: {} };
  for await (const { event } of createClient(Process, transport).start({ process: command, stdin: false }))
    events.push(event?.event);
  expect(events.map((event) => event?.case)).toEqual(["start", "data", "end"]);
  expect(events.at(-1)?.value).toMatchObject({ exitCode: 4, exited: true });
});

test("a stream ends with an error when its sandbox is killed, and a later call finds no sandbox", async () => {
  const sandbox = await ownSandbox();
  const { envdAccessToken } = await targetOf(platform, sandbox.sandboxId);
  const process = createClient(Process, transportOf(sandbox.sandboxId, envdAccessToken));
  const stream = process.start({ process: { cmd: "sleep", args: ["600"], envs: {} }, stdin: false });
  const events = stream[Symbol.asyncIterator]();
  expect((await events.next()).done).toBe(false);
  const cut = expect(events.next()).rejects.toMatchObject({ code: Code.Unavailable });
  await sandbox.kill();
  await cut;
  await expect(process.list({})).rejects.toMatchObject({ code: Code.Unavailable });
});

test("a wrong token is refused with its reason", async () => {
  const sandbox = await ownSandbox();
  const process = createClient(Process, transportOf(sandbox.sandboxId, "wrong"));
  await expect(process.list({})).rejects.toMatchObject({
    code: Code.Unauthenticated,
    rawMessage: expect.stringContaining("access token") as string,
  });
});
