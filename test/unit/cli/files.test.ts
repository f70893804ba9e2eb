/** Files of a sandbox on their way to this machine, against a server that stops half way. */

import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { download, readSmall, type Transfer, upload } from "../../../cli/inside/files.ts";

async function halfway(isCut = false): Promise<string> {
  const server = createServer((_request, answer) => {
    answer.writeHead(200, { "content-length": "1000" });
    answer.write("a part", () => {
      if (isCut) answer.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("an interruption between the answer and the first byte that is written ends the copy, and not the process", async () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-files-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const interrupted = new AbortController();
  const uncaught = vi.fn();
  process.on("uncaughtException", uncaught);
  onTestFinished(() => void process.off("uncaughtException", uncaught));
  const ask = fetch;
  vi.stubGlobal("fetch", async (...given: Parameters<typeof fetch>) => {
    const answer = await ask(...given);
    process.nextTick(() => interrupted.abort(new Error("interrupted")));
    return answer;
  });
  onTestFinished(() => void vi.unstubAllGlobals());
  const inside = { place: { url: await halfway() }, headers: {} };
  const transfer = { context: { signal: interrupted.signal }, inside, user: undefined, passed: () => undefined };
  const ended = download(transfer as unknown as Transfer, "/long", join(folder, "long"), 0o600);
  await expect(ended).rejects.toThrow();
  expect(uncaught).not.toHaveBeenCalled();
  expect(readdirSync(folder)).toEqual([]);
});

test("a connection that breaks while a small file is read is named", async () => {
  const inside = { place: { url: await halfway(true) }, headers: {} };
  const context = { signal: new AbortController().signal };
  const transfer = { context, inside, user: undefined, passed: () => undefined } as unknown as Transfer;
  await expect(readSmall(transfer, "/etc/passwd", 1_000)).rejects.toThrow(
    "the connection broke while /etc/passwd was read",
  );
});

test("a file here that cannot be read is named, and not the platform, which was reached", async () => {
  const inside = { place: { url: await halfway() }, headers: {} };
  const context = { signal: new AbortController().signal };
  const transfer = { context, inside, user: undefined, passed: () => undefined } as unknown as Transfer;
  await expect(upload(transfer, "/nothing-there", "/tmp/x")).rejects.toMatchObject({
    message: "/nothing-there cannot be read: ENOENT",
    exitCode: 3,
  });
  await expect(upload(transfer, tmpdir(), "/tmp/x")).rejects.toThrow(`${tmpdir()} cannot be read: EISDIR`);
});

test("a file for which there is no room here is named", async () => {
  const server = createServer((_request, answer) => void answer.end("some bytes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const inside = { place: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }, headers: {} };
  const context = { signal: new AbortController().signal };
  const transfer = { context, inside, user: undefined, passed: () => undefined } as unknown as Transfer;
  await expect(download(transfer, "/some", "/dev/full", 0o600)).rejects.toThrow("/dev/full cannot be written: ENOSPC");
});
