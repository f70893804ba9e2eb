import { request as httpRequest, type IncomingMessage } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { ENVD_PORT, httpBackend, openFrontDoor, routed, WAYS } from "./front-door.ts";

const UPLOAD_BYTES = 16 * 1024 * 1024;

/** Uploads as fetch and browsers do, which read the answer while they send; resolves to the status. */
function upload(port: number, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = httpRequest({ port, host: "127.0.0.1", method: "POST", path: "/files", headers, agent: false });
    call.once("response", ({ statusCode = 0 }: IncomingMessage) => {
      resolve(statusCode);
      call.destroy();
    });
    call.on("error", reject);
    call.setHeader("content-length", UPLOAD_BYTES);
    call.write(Buffer.alloc(UPLOAD_BYTES / 2));
    call.end(Buffer.alloc(UPLOAD_BYTES / 2));
  });
}

test.each(WAYS)(
  "an answer that comes while its upload is under way reaches the client, $route",
  async ({ sameHost }) => {
    const door = await openFrontDoor({ sameHost });
    onTestFinished(() => door.stop());
    const route = door.add();
    const full = await httpBackend(
      route.address,
      (request, response) => {
        request.once("data", () => response.writeHead(507, { "Content-Length": "4" }).end("full"));
      },
      ENVD_PORT,
    );
    onTestFinished(() => full.close());
    const statuses = new Set<number>();
    for (let count = 0; count < 20; count++) statuses.add(await upload(door.port, routed(route, ENVD_PORT)));
    expect([...statuses]).toEqual([507]);
    // The edge itself refuses these uploads while their bodies are under way.
    for (let count = 0; count < 5; count++) expect(await upload(door.port, { "e2b-sandbox-id": "inobody" })).toBe(502);
  },
);
