/** Who the page takes to be logged in: by a link, by a key, and after a log-out. */

import { afterEach, expect, test, vi } from "vitest";
import { pageFile } from "./page-files.ts";

interface Who {
  readonly kind: string;
  readonly why?: string;
  readonly project?: { readonly name: string };
}

const { begin, logIn, logOut, operatorProject, session } = await pageFile<{
  readonly begin: () => Promise<void>;
  readonly logIn: (secret: string) => Promise<void>;
  readonly logOut: () => Promise<void>;
  readonly operatorProject: { value: string | undefined };
  readonly session: { value: Who };
}>("base/session.ts");

const NOBODY = { kind: "none" };
const OWN = { kind: "key", project: { id: "own", name: "own" } };
const OF_THE_LINK = { kind: "key", project: { id: "of-the-link", name: "of the link" } };
const USED = { status: 401, body: { message: "this link has been used" } };

/** The page at an address, a server that answers each path, and a person who answers its question. */
function open(hash: string, answers: Readonly<Record<string, object>>, says = false) {
  const sent: string[] = [];
  const questions: string[] = [];
  vi.stubGlobal("location", { hash, pathname: "/console/" });
  vi.stubGlobal("history", { replaceState: () => undefined });
  vi.stubGlobal("confirm", (question: string) => {
    questions.push(question);
    return says;
  });
  vi.stubGlobal("fetch", (path: string) => {
    sent.push(path);
    const answer = answers[path];
    if (answer === undefined) return Promise.reject(new TypeError("nothing answers"));
    const { status = 200, body = answer } = answer as { readonly status?: number; readonly body?: object };
    return Promise.resolve(Response.json(body, { status }));
  });
  return { sent, questions };
}

afterEach(() => {
  vi.unstubAllGlobals();
  session.value = { kind: "asking" };
  operatorProject.value = undefined;
});

test.each([
  ["nobody is logged in", NOBODY, OF_THE_LINK, false, OF_THE_LINK, 0],
  ["the person does not want to change", OWN, OF_THE_LINK, false, OWN, 1],
  ["the person wants to change", OWN, OF_THE_LINK, true, OF_THE_LINK, 1],
  ["the person wants to change, and the link was used", OWN, USED, true, OWN, 1],
])("a link that anybody can send does not take the place of a log-in unasked: %s", async (...row) => {
  const [, now, byLink, says, expected, asked] = row;
  const { sent, questions } = open("#code=abc", { "/console/api/session": now, "/console/login": byLink }, says);
  await begin();
  expect(session.value).toEqual(expected);
  expect(questions).toHaveLength(asked);
  expect(sent.includes("/console/login")).toBe(asked === 0 || says);
});

test("a link that was used tells why nobody is logged in", async () => {
  open("#code=abc", { "/console/api/session": NOBODY, "/console/login": USED });
  await begin();
  expect(session.value).toEqual({ kind: "none", why: "this link has been used" });
});

test("whoever logs in with a key after an operator sends no project of the operator", async () => {
  open("", { "/console/login": OWN });
  operatorProject.value = "of-the-operator";
  await logIn("svc_key");
  expect([session.value, operatorProject.value]).toEqual([OWN, undefined]);
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
