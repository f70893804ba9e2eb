import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type RunningEnvd, runEnvd } from "./running-envd.ts";

const TOKEN = "sandbox-secret";
const WITH_TOKEN = { "x-access-token": TOKEN };

let envd: RunningEnvd;
const call = async (path: string, options: RequestInit = {}) => {
  const { status, headers, ...response } = await fetch(`${envd.url}${path}`, options).then(async (answer) => ({
    status: answer.status,
    headers: answer.headers,
    text: await answer.text(),
  }));
  return { status, headers, body: response.text === "" ? undefined : (JSON.parse(response.text) as unknown) };
};

describe("any page of a browser", () => {
  beforeEach(async () => {
    envd = await runEnvd();
    await call("/init", { method: "POST", body: JSON.stringify({ accessToken: TOKEN }) });
  });
  afterEach(() => envd.stop());

  test("may send a preflight to any path without a token", async () => {
    for (const path of ["/files", "/process.Process/Start", "/nowhere"]) {
      const { status, headers } = await call(path, {
        method: "OPTIONS",
        headers: {
          origin: "https://example.com",
          "access-control-request-method": "POST",
          "access-control-request-headers": "x-access-token,x-metadata-a",
        },
      });
      expect(status).toBe(204);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-allow-headers")).toBe("x-access-token,x-metadata-a");
      expect(headers.get("access-control-allow-methods")).toContain("POST");
      expect(headers.get("access-control-max-age")).toBe("7200");
    }
  });

  test("may read every answer, refusals too", async () => {
    for (const path of ["/metrics", "/nowhere", "/health"])
      expect((await call(path)).headers.get("access-control-allow-origin")).toBe("*");
    const rpc = await call("/filesystem.Filesystem/Stat", { method: "POST", headers: WITH_TOKEN, body: "{}" });
    expect(rpc.headers.get("access-control-allow-origin")).toBe("*");
  });

  test("gets an error that names the unknown path or method", async () => {
    expect(await call("/nowhere")).toMatchObject({ status: 404, body: { code: 404 } });
    expect(await call("/health", { method: "DELETE" })).toMatchObject({
      status: 400,
      body: { message: "/health does not know the method DELETE" },
    });
    expect((await call("/metrics", { headers: WITH_TOKEN })).body).toMatchObject({
      cpu_count: expect.any(Number),
      mem_total: expect.any(Number),
      disk_total: expect.any(Number),
    });
  });
});
