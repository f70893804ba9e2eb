/** Requests that name no sandbox but carry its envd token, as clients of the SDK's versions 2.7 to 2.14 send them. */

import { describe, expect, onTestFinished, test } from "vitest";
import type { EdgeRoute } from "../../../../orchestrator/edge/sandbox-lookup.ts";
import { ask } from "../../../support/peers/raw-client.ts";
import { ENVD_PORT, httpBackend, openFrontDoor, WAYS } from "./front-door.ts";

const request = (method: string, path: string, token: string, more = "") =>
  `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:3002\r\nX-Access-Token: ${token}\r\nConnection: close\r\n${more}\r\n`;

function envdOf(route: EdgeRoute) {
  const answer = (name: string) =>
    httpBackend(
      route.address,
      (asked, response) =>
        response.end(`${name} ${asked.method} ${asked.url} ${String(asked.headers["x-access-token"])}`),
      ENVD_PORT,
    );
  return answer(route.sandboxId);
}

describe.each(WAYS)("a token that names its sandbox, $route,", ({ sameHost }) => {
  test("leads files, health and calls to envd of that sandbox, and to no other port", async () => {
    const door = await openFrontDoor({ sameHost });
    onTestFinished(() => door.stop());
    const [one, two] = [door.add(), door.add()];
    for (const route of [one, two]) {
      const envd = await envdOf(route);
      onTestFinished(() => envd.close());
    }
    for (const { sandboxId, envdAccessToken } of [one, two, one]) {
      for (const [method, path] of [
        ["GET", "/health"],
        ["POST", "/files?path=a.txt"],
        ["POST", "/process.Process/Start"],
        ["OPTIONS", "/files"],
      ] as const) {
        const answer = await ask(door.port, request(method, path, envdAccessToken, "Content-Length: 0\r\n"));
        expect(answer).toContain(`${sandboxId} ${method} ${path} ${envdAccessToken}`);
      }
    }
    const internal = await ask(door.port, request("POST", "/init", one.envdAccessToken));
    expect(internal).toMatch(/^HTTP\/1\.1 404 [^]*reserved for the control plane/);
    const port = await ask(door.port, request("GET", "/", one.envdAccessToken, "E2b-Sandbox-Port: 8000\r\n"));
    expect(port).toMatch(/^HTTP\/1\.1 400 [^]*missing header/);
    const both = await ask(
      door.port,
      request("GET", "/", one.envdAccessToken, `X-Access-Token: ${two.envdAccessToken}\r\n`),
    );
    expect(both).toMatch(/^HTTP\/1\.1 400 /);
  });

  test("of no sandbox is answered as an unknown sandbox is, and an address may send only some", async () => {
    const door = await openFrontDoor({ sameHost });
    onTestFinished(() => door.stop());
    const route = door.add();
    const envd = await envdOf(route);
    onTestFinished(() => envd.close());
    for (const wrong of ["x", `${route.envdAccessToken}x`, route.sandboxId]) {
      const answer = await ask(door.port, request("GET", "/health", wrong));
      expect(answer).toMatch(/^HTTP\/1\.1 502 [^]*belongs to none/);
    }
    const statuses = new Set<string>();
    // Many at a time: one more is allowed each second, and on a busy machine single ones may take as long.
    for (let round = 0; round < 6; round++) {
      const wrong = Array.from({ length: 20 }, (_, index) => request("GET", "/health", `wrong-${round}-${index}`));
      for (const answer of await Promise.all(wrong.map((each) => ask(door.port, each))))
        statuses.add(answer.slice(9, 12));
    }
    expect([...statuses]).toEqual(["502", "429"]);
    expect(await ask(door.port, request("GET", "/health", route.envdAccessToken))).toMatch(/^HTTP\/1\.1 200 /);
    await door.remove(route.sandboxId, "killed");
    expect(await ask(door.port, request("GET", "/health", route.envdAccessToken))).toMatch(/^HTTP\/1\.1 (429|502) /);
  });
});
