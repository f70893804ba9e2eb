/** Files over plain HTTP: signed URLs, multipart and raw bodies, compression, ranges, and composing. */

import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { Sandbox } from "e2b";
import { describe, expect, test } from "vitest";
import { openPlatform, readReply } from "../../support/platform/platform.ts";
import { send, targetOf } from "../../support/sandbox/sandbox-host.ts";
import { sharedSandbox } from "../../support/sandbox/sdk.ts";

const platform = openPlatform();
const sandbox = sharedSandbox();

describe("signed URLs", () => {
  test("a download URL gives the file to anybody who has it", async () => {
    await sandbox().files.write("signed ü+.txt", "for you");
    const response = await fetch(await sandbox().downloadUrl("signed ü+.txt"));
    expect([response.status, await response.text()]).toEqual([200, "for you"]);
  });

  test("an upload URL takes a form with a file", async () => {
    const form = new FormData();
    form.append("file", new Blob(["from a form"]), "ignored.txt");
    const response = await fetch(await sandbox().uploadUrl("by-url.txt"), { method: "POST", body: form });
    expect([response.status, await response.json()]).toEqual([
      200,
      [{ name: "by-url.txt", path: "/home/user/by-url.txt", type: "file" }],
    ]);
    expect(await sandbox().files.read("by-url.txt")).toBe("from a form");
  });

  test("an upload URL without a path takes the names of the form, with their directories", async () => {
    const form = new FormData();
    form.append("file", new Blob(["one"]), "forms/dïr/one.txt");
    form.append("file", new Blob(["two"]), "/tmp/forms-two.txt");
    form.append("other", new Blob(["skipped"]), "forms/skipped.txt");
    const response = await fetch(await sandbox().uploadUrl(), { method: "POST", body: form });
    expect(response.status).toBe(200);
    expect(((await response.json()) as { path: string }[]).map((info) => info.path)).toEqual([
      "/home/user/forms/dïr/one.txt",
      "/tmp/forms-two.txt",
    ]);
    expect(await sandbox().files.exists("forms/skipped.txt")).toBe(false);
  });

  test("a part without a file name is fine when the path is given", async () => {
    const form = new FormData();
    form.append("file", "just text");
    const response = await fetch(await sandbox().uploadUrl("nameless.txt"), { method: "POST", body: form });
    expect(response.status).toBe(200);
    expect(await sandbox().files.read("nameless.txt")).toBe("just text");
  });

  test("a URL whose expiry is in the future works", async () => {
    await sandbox().files.write("later.txt", "x");
    const response = await fetch(await sandbox().downloadUrl("later.txt", { useSignatureExpiration: 60 }));
    expect(response.status).toBe(200);
  });

  test("an expired URL is refused as expired, for reading and writing", async () => {
    const expired = { code: 401, message: "signature is already expired" };
    for (const seconds of [-1, -100_000]) {
      const down = await fetch(await sandbox().downloadUrl("later.txt", { useSignatureExpiration: seconds }));
      expect([down.status, await down.json()]).toEqual([401, expired]);
      const form = new FormData();
      form.append("file", "late");
      const url = await sandbox().uploadUrl("late.txt", { useSignatureExpiration: seconds });
      const up = await fetch(url, { method: "POST", body: form });
      expect([up.status, await up.json()]).toEqual([401, expired]);
    }
  });

  test("a signature is for one path, one direction, one user and one end", async () => {
    const url = new URL(await sandbox().downloadUrl("signed ü+.txt", { useSignatureExpiration: 60 }));
    const changes: Record<string, string> = {
      path: "/etc/passwd",
      username: "root",
      signature_expiration: "9999999999",
    };
    for (const [name, value] of Object.entries(changes)) {
      const changed = new URL(url);
      changed.searchParams.set(name, value);
      const reply = await readReply(await routed(changed));
      expect([name, reply.status, (reply.json as { message: string }).message]).toEqual([
        name,
        401,
        "invalid signature",
      ]);
    }
    const form = new FormData();
    form.append("file", "x");
    const upload = await routed(url, { method: "POST", body: form });
    expect(upload.status).toBe(401);
  });

  test("a missing and a wrong signature have messages of their own", async () => {
    const none = await readReply(await send(platform, sandbox().sandboxId, "/files?path=x"));
    expect([none.status, none.json]).toEqual([401, { code: 401, message: "missing signature query parameter" }]);
    const wrong = await readReply(await send(platform, sandbox().sandboxId, "/files?path=x&signature=v1_nothing"));
    expect([wrong.status, wrong.json]).toEqual([401, { code: 401, message: "invalid signature" }]);
    const header = { "x-access-token": "wrong" };
    const token = await readReply(await send(platform, sandbox().sandboxId, "/files?path=x", { headers: header }));
    expect([token.status, (token.json as { message: string }).message]).toEqual([
      401,
      "access token present in header but does not match",
    ]);
  });

  test("a signature for no sandbox, without routing headers, reaches none", async () => {
    const response = await fetch(`${platform.sandboxUrl}/files?path=x&signature=v1_${"A".repeat(43)}`);
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(response.status).toBeLessThan(500);
  });

  test("a URL of a killed sandbox is dead", async () => {
    const other = await Sandbox.create({ timeoutMs: 60_000 });
    await other.files.write("x", "x");
    const url = await other.downloadUrl("x");
    expect((await fetch(url)).status).toBe(200);
    await other.kill();
    expect((await fetch(url)).status).toBeGreaterThanOrEqual(400);
  });
});

describe("raw requests to /files", () => {
  test("a download has a type, a name and ranges", async () => {
    await sandbox().files.write("range.txt", "0123456789");
    const whole = await get("range.txt");
    expect(whole.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(whole.headers.get("content-length")).toBe("10");
    expect(whole.headers.get("content-disposition")).toContain("range.txt");
    const part = await get("range.txt", { range: "bytes=2-4" });
    expect([part.status, await part.text(), part.headers.get("content-range")]).toEqual([206, "234", "bytes 2-4/10"]);
    expect((await get("range.txt", { range: "bytes=50-" })).status).toBe(416);
    const since = whole.headers.get("last-modified") ?? "";
    expect((await get("range.txt", { "if-modified-since": since })).status).toBe(304);
  });

  test("a download is gzip when that is preferred, plain when not, and refused when neither is acceptable", async () => {
    await sandbox().files.write("enc.txt", "e".repeat(10_000));
    const packed = await get("enc.txt", { "accept-encoding": "gzip" });
    expect(packed.headers.get("content-encoding")).toBe("gzip");
    expect(packed.headers.get("vary")).toMatch(/accept-encoding/i);
    expect(await packed.text()).toBe("e".repeat(10_000));
    const plain = await get("enc.txt", { "accept-encoding": "identity" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    const never = await readReply(await get("enc.txt", { "accept-encoding": "identity;q=0, br" }));
    expect([never.status, (never.json as { message: string }).message]).toEqual([
      406,
      "no acceptable encoding found, supported: [identity, gzip]",
    ]);
  });

  test("an empty file is downloaded with the length zero", async () => {
    await sandbox().files.write("void.txt", "");
    expect((await get("void.txt")).headers.get("content-length")).toBe("0");
  });

  test("an upload may be octets or compressed octets; other encodings, types and a missing path are refused", async () => {
    expect((await post("/files?path=o.bin", "raw", { "content-type": "application/octet-stream" })).json).toEqual([
      { name: "o.bin", path: "/home/user/o.bin", type: "file" },
    ]);
    const gzip = { "content-type": "application/octet-stream", "content-encoding": "gzip" };
    expect((await post("/files?path=z.txt", new Uint8Array(gzipSync("unpacked")), gzip)).status).toBe(200);
    expect(await sandbox().files.read("z.txt")).toBe("unpacked");
    expect((await post("/files?path=z.txt", "not gzip", gzip)).status).toBe(400);
    const brotli = { ...gzip, "content-encoding": "br" };
    expect((await post("/files?path=z.txt", "x", brotli)).status).toBe(400);
    expect((await post("/files", "x", { "content-type": "application/octet-stream" })).status).toBe(400);
    expect((await post("/files?path=x", "{}", { "content-type": "application/json" })).status).toBe(400);
  });

  test("the same file twice in one form is refused", async () => {
    const form = new FormData();
    form.append("file", new Blob(["1"]), "twice.txt");
    form.append("file", new Blob(["2"]), "./twice.txt");
    const target = await targetOf(platform, sandbox().sandboxId);
    const headers = { "x-access-token": target.envdAccessToken };
    const response = await send(platform, sandbox().sandboxId, "/files", { method: "POST", headers, body: form });
    expect(response.status).toBe(400);
  });

  test("compose joins parts in order, removes them, and replaces the destination", async () => {
    const parts = ["part ü 1,", "part 2,", "part 3"];
    await sandbox().files.write(parts.map((data, index) => ({ path: `compose/${index}`, data })));
    await sandbox().files.write("compose/whole", "old");
    const body = { source_paths: ["compose/0", "compose/1", "compose/2"], destination: "compose/whole" };
    const reply = await post("/files/compose", JSON.stringify(body), { "content-type": "application/json" });
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ name: "whole", path: "/home/user/compose/whole", type: "file" });
    expect(await sandbox().files.getInfo("compose/whole")).toMatchObject({ owner: "user", mode: 0o644 });
    expect(await sandbox().files.read("compose/whole")).toBe(parts.join(""));
    expect((await sandbox().files.list("compose")).map((entry) => entry.name)).toEqual(["whole"]);
  });

  test("compose with a missing part changes nothing", async () => {
    await sandbox().files.write("compose2/a", "a");
    const body = { source_paths: ["compose2/a", "compose2/missing"], destination: "compose2/whole" };
    const reply = await post("/files/compose", JSON.stringify(body), { "content-type": "application/json" });
    expect(reply.status).toBe(404);
    expect((await sandbox().files.list("compose2")).map((entry) => entry.name)).toEqual(["a"]);
    const bare = await send(platform, sandbox().sandboxId, "/files/compose", { method: "POST", body: "{}" });
    expect(bare.status).toBe(401);
  });
});

describe("the other plain routes", () => {
  test("health needs nothing", async () => {
    const response = await send(platform, sandbox().sandboxId, "/health");
    expect([response.status, response.headers.get("cache-control")]).toEqual([204, "no-store"]);
  });

  test("metrics and environment need the token", async () => {
    expect((await send(platform, sandbox().sandboxId, "/metrics")).status).toBe(401);
    expect((await send(platform, sandbox().sandboxId, "/envs")).status).toBe(401);
    const target = await targetOf(platform, sandbox().sandboxId);
    const headers = { "x-access-token": target.envdAccessToken };
    const metrics = await readReply(await send(platform, sandbox().sandboxId, "/metrics", { headers }));
    const fields = ["ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache", "disk_used", "disk_total"];
    expect(metrics.json).toMatchObject(Object.fromEntries(fields.map((name) => [name, expect.any(Number) as number])));
    expect((await send(platform, sandbox().sandboxId, "/envs", { headers })).status).toBe(200);
  });

  test.each(["/init", "/freeze", "/unfreeze", "/connect?port=22", "/logs", "/warm", "/%69nit", "//init", "/x/../init"])(
    "%s is closed to clients, even with the token",
    async (path) => {
      const target = await targetOf(platform, sandbox().sandboxId);
      const headers = { "x-access-token": target.envdAccessToken, "content-type": "application/json" };
      const reply = await readReply(
        await send(platform, sandbox().sandboxId, path, { method: "POST", headers, body: "{}" }),
      );
      expect(reply.status).toBe(404);
    },
  );
});

test("the published example of a signature is what we compute", () => {
  const token = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
  const hash = createHash("sha256").update(`hello.txt:read:user:${token}`).digest("base64").replace(/=+$/, "");
  expect(`v1_${hash}`).toBe("v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
});

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return targetOf(platform, sandbox().sandboxId).then((target) =>
    send(platform, sandbox().sandboxId, `/files?path=${path}`, {
      headers: { "x-access-token": target.envdAccessToken, ...headers },
    }),
  );
}

type Body = NonNullable<RequestInit["body"]>;

async function post(path: string, body: Body, headers: Record<string, string>) {
  const target = await targetOf(platform, sandbox().sandboxId);
  const all = { "x-access-token": target.envdAccessToken, ...headers };
  return readReply(await send(platform, sandbox().sandboxId, path, { method: "POST", headers: all, body }));
}

function routed(url: URL, init: RequestInit = {}): Promise<Response> {
  return fetch(url, { ...init, headers: { "e2b-sandbox-id": sandbox().sandboxId, "e2b-sandbox-port": "49983" } });
}
