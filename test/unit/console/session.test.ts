/** Who the page takes to be logged in: by a link, by a key, and after a log-out. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "./page-files.ts";

interface Who {
  readonly kind: string;
  readonly why?: string;
  readonly project?: { readonly name: string };
}

const page = await pageFile<{
  readonly acceptLink: (offer: Who) => Promise<void>;
  readonly becomeAsOtherTab: () => Promise<void>;
  readonly begin: () => Promise<void>;
  readonly declineLink: (offer: Who) => void;
  readonly logIn: (secret: string) => Promise<void>;
  readonly logOut: () => Promise<void>;
  readonly operatorProject: { value: string | undefined };
  readonly foundLater: (found: Who) => void;
  readonly session: { value: Who };
  readonly sessionEnded: () => void;
  readonly sessionProven: () => void;
}>("base/session.ts");
const { acceptLink, begin, declineLink, logIn, logOut, operatorProject, session } = page;

const NOBODY = { kind: "none" };
const KEY = { name: "of a person", mask: "svc_ab…beef" };
const OWN = { kind: "key", project: { id: "own", name: "own" }, key: KEY };
const OF_THE_LINK = { kind: "key", project: { id: "of-the-link", name: "of the link" }, key: KEY };
const USED = { status: 401, body: { message: "this link has been used" } };

/** The page at an address, and a server that answers each path. Returns the paths that the page has sent something to. */
function open(hash: string, answers: Readonly<Record<string, object>>): readonly string[] {
  const sent: string[] = [];
  vi.stubGlobal("location", { hash, pathname: "/console/", search: "" });
  vi.stubGlobal("history", { replaceState: () => undefined });
  vi.stubGlobal("fetch", (path: string) => {
    sent.push(path);
    const answer = answers[path];
    if (answer === undefined) return Promise.reject(new TypeError("nothing answers"));
    const { status = 200, body = answer } = answer as { readonly status?: number; readonly body?: object };
    return Promise.resolve(Response.json(body, { status }));
  });
  return sent;
}

afterEach(() => {
  vi.unstubAllGlobals();
  session.value = { kind: "asking" };
  operatorProject.value = undefined;
});

const REFUSED = { kind: "none", why: "this link has been used" };

test.each([
  ["nobody is logged in, and the person accepts it", NOBODY, true, OF_THE_LINK, OF_THE_LINK],
  ["nobody is logged in, and the person declines it", NOBODY, false, OF_THE_LINK, NOBODY],
  ["somebody is logged in, and the person accepts it", OWN, true, OF_THE_LINK, OF_THE_LINK],
  ["somebody is logged in, and the person declines it", OWN, false, OF_THE_LINK, OWN],
  ["nobody is logged in, and the link was used meanwhile", NOBODY, true, USED, REFUSED],
  ["somebody is logged in, and the link was used meanwhile", OWN, true, USED, OWN],
])("a link that anybody can send logs nobody in before the person presses the button: %s", async (...row) => {
  const [, before, accepts, byLink, expected] = row;
  const answers = { "/console/api/session": before, "/console/link": OF_THE_LINK, "/console/login": byLink };
  const sent = open("#code=abc", answers);
  await begin();
  const offer = session.value;
  expect(offer).toEqual({ kind: "link", code: "abc", whose: OF_THE_LINK, before });
  expect(sent).not.toContain("/console/login");
  if (accepts) await acceptLink(offer);
  else declineLink(offer);
  expect(session.value).toEqual(expected);
  expect(sent.includes("/console/login")).toBe(accepts);
});

test.each([
  ["nobody is logged in, and the log-in tells why", NOBODY, REFUSED],
  ["somebody is logged in, and stays so", OWN, OWN],
])("a link that was used asks nothing: %s", async (_name, before, expected) => {
  const sent = open("#code=abc", { "/console/api/session": before, "/console/link": USED });
  await begin();
  expect(session.value).toEqual(expected);
  expect(sent).not.toContain("/console/login");
});

test("whoever logs in with a key after an operator sends no project of the operator", async () => {
  open("", { "/console/login": OWN });
  operatorProject.value = "of-the-operator";
  await logIn("svc_key");
  expect([session.value, operatorProject.value]).toEqual([OWN, undefined]);
});

test("a refused log-in tells all that was said, with the request that the platform's log has", async () => {
  const body = { code: 401, error_code: "unauthorized", message: "Unknown or revoked API key" };
  vi.stubGlobal("fetch", () =>
    Promise.resolve(Response.json(body, { status: 401, headers: { "x-request-id": "req-1" } })),
  );
  await logIn("svc_key");
  expect(session.value.why).toBe("Unknown or revoked API key (401 unauthorized · request_id req-1)");
});

test.each([
  ["was ended", { status: 200 }, undefined],
  ["could not be ended", { status: 503 }, /may still be logged in/],
  ["may not have ended, because nothing answers", undefined, /may still be logged in/],
])("a log-out says whether the session has ended: it %s", async (_name, answer, why) => {
  open("", answer === undefined ? {} : { "/console/logout": answer });
  await logOut();
  expect(session.value.kind).toBe("none");
  if (why === undefined) expect(session.value.why).toBeUndefined();
  else expect(session.value.why).toMatch(why);
});

test.each([
  ["the key itself", " svc_key\n", { "x-api-key": "svc_key" }],
  ["the line of .svc/env", "SVC_API_KEY=svc_key", { "x-api-key": "svc_key" }],
  ["a line for a shell, in quotes", 'export E2B_API_KEY="e2b_key"', { "x-api-key": "e2b_key" }],
  ["a key in the quotes of a text program", "“svc_key”", { "x-api-key": "svc_key" }],
  ["an operator's line", "SVC_ADMIN_TOKEN='a token'", { "x-admin-token": "a token" }],
  ["a token that looks like a setting", "NAME=value", { "x-admin-token": "NAME=value" }],
])("what is pasted into the log-in may be %s", async (_name, pasted, expected) => {
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", (_path: string, { headers }: { readonly headers: object }) => {
    sent.push(headers);
    return Promise.resolve(Response.json(OWN));
  });
  await logIn(pasted);
  expect(sent).toEqual([expected]);
});

test("a key whose middle is hidden is refused here, and no silence of the platform is made up", async () => {
  const sent = open("", { "/console/login": OWN });
  await logIn("svc_ab…beef");
  expect([session.value.why, sent]).toEqual([expect.stringMatching(/^No key has the character U\+2026/), []]);
});

test("who was logged in comes back when the platform does, and nobody after a log-out", async () => {
  open("", {});
  await begin();
  expect(session.value.why).toMatch(/^The platform does not answer/);
  page.foundLater(OWN);
  expect(session.value).toEqual(OWN);
  open("", { "/console/logout": { status: 503 } });
  await logOut();
  page.foundLater(OWN);
  expect(session.value.kind).toBe("none");
});

test("a log-in whose cookie the browser has not kept is told apart from a session that has ended", async () => {
  open("", { "/console/login": OWN });
  await logIn("svc_key");
  page.sessionEnded();
  expect(session.value.why).toMatch(/the browser has not kept its cookie/);
  await logIn("svc_key");
  page.sessionProven();
  page.sessionEnded();
  expect(session.value.why).toBe("The session has ended. Log in again to go on.");
});

test.each([
  ["has logged in with another key", OWN, OF_THE_LINK, OF_THE_LINK],
  ["has logged out", OWN, NOBODY, NOBODY],
  ["has logged in where nobody was", NOBODY, OWN, OWN],
  ["has the same session", OWN, { ...OWN }, OWN],
  ["has opened a link, which this one asks about", { kind: "link" }, OWN, { kind: "link" }],
])("a tab becomes as another one that %s", async (_name, before, now, expected) => {
  open("", { "/console/api/session": now });
  session.value = before;
  await page.becomeAsOtherTab();
  expect(session.value).toEqual(expected);
});

test("a tab stays as it is while the platform does not answer who is logged in", async () => {
  open("", {});
  session.value = OWN;
  await page.becomeAsOtherTab();
  expect(session.value).toEqual(OWN);
});
