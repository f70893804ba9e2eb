/** What the page says of answers that a proxy in front of the platform has made, and of requests that got none. */

import { afterEach, expect, test, vi } from "vitest";
import { Failed } from "../../../../console/src/base/failed.ts";
import { pageFile } from "../page-files.ts";

const { act, get, send } = await pageFile<{
  readonly act: (method: string, path: string) => Promise<unknown>;
  readonly get: (path: string) => Promise<unknown>;
  readonly send: (method: string, path: string, options: { readonly body?: unknown }) => Promise<Response>;
}>("base/client.ts");
const { logIn, session } = await pageFile<{
  readonly logIn: (secret: string) => Promise<void>;
  readonly session: { value: { readonly kind: string; readonly why?: string } };
}>("base/session.ts");
const { performed } = await pageFile<{ readonly performed: { readonly value: readonly unknown[] } }>(
  "base/performed.ts",
);

afterEach(() => {
  vi.unstubAllGlobals();
  session.value = { kind: "asking" };
});

const answering = (answer: () => Promise<Response>) => vi.stubGlobal("fetch", answer);
const page = (status: number, title: string) => () =>
  Promise.resolve(
    new Response(`<html>\r\n<head><title>${title}</title></head>\r\n<body>nginx</body></html>`, { status }),
  );
const failureOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error as Failed);

test.each([
  [413, "413 Request Entity Too Large", /takes no request of this size.*client_max_body_size.*413 Request Entity/],
  [502, "502 Bad Gateway", /^A proxy in front of the platform gets no answer of it\. \(502 Bad Gateway, HTTP 502\)$/],
  [522, "origin | 522: Connection timed out", /gets no answer of it/],
  [401, "401 Authorization Required", /log-in of its own: load the page again/],
  [403, "Access denied", /^Something in front of the platform has answered: Access denied, HTTP 403$/],
])("a proxy's page with status %i is told in words, not as HTML", async (status, title, said) => {
  answering(page(status, title));
  const failure = await failureOf(get("/v2/sandboxes"));
  expect(failure).toBeInstanceOf(Failed);
  expect([failure?.status, failure?.message]).toEqual([status, expect.stringMatching(said)]);
  expect(failure?.message).not.toContain("<");
});

test("a proxy that wants a log-in of its own does not end the session", async () => {
  session.value = { kind: "key" };
  answering(page(401, "Sign in"));
  await failureOf(get("/v2/sandboxes"));
  expect(session.value.kind).toBe("key");
  answering(() => Promise.resolve(Response.json({ code: 401, message: "nobody is logged in" }, { status: 401 })));
  await failureOf(get("/v2/sandboxes"));
  expect(session.value.kind).toBe("none");
});

test("a log-in page with status 200 in place of an answer is no success, and is not listed as done", async () => {
  answering(page(200, "Sign in to Example"));
  for (const work of [() => get("/v2/sandboxes"), () => act("POST", "/sandboxes/a/pause")])
    expect((await failureOf(work()))?.message).toMatch(/log-in of its own: load the page again.*Sign in to Example/);
  expect(performed.value).toEqual([]);
});

test("a request that is sent on to another host's log-in says so, and another one that the platform does not answer", async () => {
  const redirected = { type: "opaqueredirect" } as Response;
  answering(((_path: string, { redirect }: RequestInit = {}) =>
    redirect === "manual" ? Promise.resolve(redirected) : Promise.reject(new TypeError("Failed to fetch"))) as never);
  expect((await failureOf(get("/v2/sandboxes")))?.message).toMatch(/log-in of its own/);
  answering(() => Promise.reject(new TypeError("Failed to fetch")));
  const failure = await failureOf(get("/v2/sandboxes"));
  expect([failure?.status, failure?.message]).toEqual([0, expect.stringContaining("The platform does not answer")]);
});

test("a file that the browser cannot read is told as such, and is not sent again and again", async () => {
  answering(() => Promise.reject(new TypeError("Failed to fetch")));
  const folder = new Blob(["a"]);
  Object.assign(folder, { slice: () => ({ arrayBuffer: () => Promise.reject(new Error("NotReadableError")) }) });
  const failure = await failureOf(send("POST", "/console/api/x", { body: folder }));
  expect(failure).not.toBeInstanceOf(Failed);
  expect(failure?.message).toMatch(/cannot read it: it is a folder, or was changed, moved or deleted/);
});

test("a log-in that a proxy answers says what the proxy said", async () => {
  answering(page(502, "502 Bad Gateway"));
  await logIn("svc_key");
  expect(session.value.why).toBe("A proxy in front of the platform gets no answer of it. (502 Bad Gateway, HTTP 502)");
});

test.each([200, 401, 502])("what a sandbox answers with status %i is not told as a proxy's", async (status) => {
  const text = "<title>Log in at evil.example</title>";
  const headers = { "content-disposition": "attachment" };
  answering(() => Promise.resolve(new Response(text, { status, headers })));
  const failure = await failureOf(get("/sandboxes/a/envd/process.Process/List"));
  expect(failure?.message).toBe(status === 200 ? "The sandbox has answered with something else than JSON." : text);
  // A failure with status 0 would be asked for again and again.
  expect(failure?.status).toBe(status === 200 ? undefined : status);
});
