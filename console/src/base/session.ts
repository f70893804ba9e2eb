/** Who is logged in. The cookie itself is out of reach of this code. */

import { computed, signal } from "@preact/signals";
import { foreignAnswer, foreignRefusal, whyUnanswered } from "./foreign.ts";
import { forgetPerformed } from "./performed.ts";

type Scope = "read" | "sandboxes" | "templates" | "admin";

export type Session =
  | { readonly kind: "asking" }
  | {
      readonly kind: "none";
      readonly why?: string;
      readonly provider?: string;
      /** The platform has not said that: it has not answered. */
      readonly isUnknown?: true;
    }
  | LinkOffer
  | { readonly kind: "admin"; readonly version: string }
  | {
      readonly kind: "person";
      readonly version: string;
      readonly name: string;
      /** At least one. */
      readonly projects: readonly { readonly id: string; readonly name: string; readonly scopes: readonly Scope[] }[];
    }
  | KeySession;

interface KeySession {
  readonly kind: "key";
  readonly version: string;
  readonly project: { readonly id: string; readonly name: string };
  readonly key: {
    readonly name: string;
    readonly mask: string;
    readonly scopes: readonly Scope[];
    readonly expiresAt: string | null;
  };
}

/** A one-time link was opened, and the person has not said yet whether it may log in. */
export interface LinkOffer {
  readonly kind: "link";
  readonly code: string;
  /** Whom it logs in. */
  readonly whose: KeySession;
  /** The log-in that the browser has now. It stays when the person does not answer. */
  readonly before: Session;
}

export const session = signal<Session>({ kind: "asking" });

/** The project that an operator looks at, or somebody who has several. */
export const operatorProject = signal<string | undefined>(undefined);

/** The project whose objects the screens show. */
export const projectId = computed(() => {
  const now = session.value;
  return now.kind === "key" ? now.project.id : operatorProject.value;
});

/** Whether the session may call the routes that need this scope. */
export function may(scope: Scope): boolean {
  const now = session.value;
  if (now.kind === "person")
    return now.projects.some(({ id, scopes }) => id === operatorProject.value && scopes.includes(scope));
  return now.kind === "admin" || (now.kind === "key" && now.key.scopes.includes(scope));
}

/** Why a log-in at the provider came to nothing: the address has a code alone, because anybody can write one. */
const REFUSED: Readonly<Record<string, string>> = {
  expired: "The log-in took too long, or was begun in another browser. Begin it again.",
  failed: "The provider's answer was not that of this log-in, or it refused. Begin it again.",
  limited: "Too many log-ins were begun from this address. Wait a minute, and begin it again.",
  "no-role": "You have no role in a project here. Ask an operator to give one (SVC_OIDC_ROLES).",
  unreachable: "The provider of log-ins does not answer. An API key logs in all the same.",
};

/** Asks whether somebody is logged in, and whom the one-time link logs in that is in the address. */
export async function begin(): Promise<void> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  const refused = /^#refused=([\w-]+)$/.exec(location.hash)?.[1];
  if (location.hash !== "") history.replaceState(null, "", location.pathname + location.search);
  const found = await ask("GET", "/console/api/session", {});
  if (code !== undefined) {
    become(await offerOf(code, found));
    return;
  }
  const why = refused === undefined ? undefined : REFUSED[refused];
  become(found.kind === "none" && why !== undefined ? { ...found, why } : found);
}

/**
 * An attacker can make a link with a key of their own and send it. A page that used it unasked would have the person work in
 * the attacker's project. So the page uses the link only after the person presses a button that names whom it logs in.
 */
async function offerOf(code: string, before: Session): Promise<Session> {
  const whose = await ask("GET", "/console/link", { "x-console-code": code });
  return whose.kind === "key" ? { kind: "link", code, whose, before } : afterRefusal(before, whose);
}

/** The browser keeps the log-in that it had. Without one, the log-in page tells why the link was refused. */
function afterRefusal(before: Session, refused: Session): Session {
  return before.kind === "none" ? { ...before, ...refused } : before;
}

/** Uses the link. */
export async function acceptLink({ code, before }: LinkOffer): Promise<void> {
  const made = await ask("POST", "/console/login", { "x-console-code": code });
  isProven = made.kind === "none";
  become(made.kind === "none" ? afterRefusal(before, made) : made);
}

/** Leaves the link as it is. */
export function declineLink({ before }: LinkOffer): void {
  become(before);
}

/** Forgets the project of the former session: the page would send it with each request. */
function become(now: Session): void {
  if (now.kind === "key") operatorProject.value = undefined;
  if (now.kind === "person") operatorProject.value = now.projects[0]?.id;
  session.value = now;
}

/** Somebody is logged in after all, by an answer that came later. */
export function foundLater(found: Session): void {
  const now = session.value;
  if (now.kind === "none" && now.isUnknown === true && found.kind !== "none") become(found);
}

/** Of whom a session is, for comparison. Undefined: this tab waits for an answer, of the platform or of a person. */
export function whose(now: Session): string | undefined {
  if (now.kind === "asking" || now.kind === "link") return undefined;
  if (now.kind === "person") return `person ${now.name}`;
  return now.kind === "key" ? `key ${now.project.id} ${now.key.name} ${now.key.mask}` : now.kind;
}

/** Another tab of this browser has logged in or out. */
export async function becomeAsOtherTab(): Promise<void> {
  if (whose(session.value) === undefined) return;
  const found = await ask("GET", "/console/api/session", {});
  const before = whose(session.value);
  const isUnknown = found.kind === "none" && found.isUnknown === true;
  if (isUnknown || before === undefined || before === whose(found)) return;
  forgetPerformed();
  become(found);
}

/** False: nothing has been answered to the session since the log-in on this page. */
let isProven = true;

/** The platform has answered a request of the session. */
export function sessionProven(): void {
  isProven = true;
}

/** Exchanges an API key, or an operator's token, for a cookie. */
export async function logIn(typed: string): Promise<void> {
  const secret = secretIn(typed);
  const at = secret.search(NO_HEADER);
  if (at >= 0) {
    become({ kind: "none", why: unsendable(secret.codePointAt(at) ?? 0) });
    return;
  }
  const name = /^(svc|e2b)_/.test(secret) ? "x-api-key" : "x-admin-token";
  const found = await ask("POST", "/console/login", { [name]: secret });
  isProven = found.kind === "none";
  become(found);
}

/** What no header may have, so that a browser sends nothing. */
const NO_HEADER = /[^\t -~\u0080-\u00ff]/u;

function unsendable(character: number): string {
  const name = `U+${character.toString(16).toUpperCase().padStart(4, "0")}`;
  return `No key has the character ${name}, as what is pasted has. Copy the key where it is whole, and not where a part of it is hidden.`;
}

/** The key of a line of `.svc/env`, which people copy whole, and without quotes. */
function secretIn(typed: string): string {
  const value = typed.trim().replace(/^(?:export\s+)?(?:SVC|E2B)_[A-Z_]+=/, "");
  return (
    /^(?:"(.*)"|'(.*)'|“(.*)”)$/
      .exec(value)
      ?.slice(1)
      .find((each) => each !== undefined) ?? value
  );
}

const NOT_ENDED =
  "The platform does not answer, and this browser may still be logged in. Load the page again, and log out once more.";

export async function logOut(): Promise<void> {
  // No screen is shown any more, so what the screens still ask ends now. Answered after the log-out, it would be refused.
  session.value = { kind: "asking" };
  const isEnded = await fetch("/console/logout", { method: "POST" }).then(
    ({ ok }) => ok,
    () => false,
  );
  forgetPerformed();
  operatorProject.value = undefined;
  session.value = isEnded ? { kind: "none" } : { kind: "none", why: NOT_ENDED };
}

const ENDED = "The session has ended. Log in again to go on.";
const NOT_KEPT =
  "The log-in was right, and the browser has not kept its cookie: allow cookies for this site. A proxy in front must send X-Forwarded-Proto with the scheme of the address above (http or https).";

/** A request was refused because nobody is logged in any more. */
export function sessionEnded(): void {
  if (session.value.kind === "none") return;
  forgetPerformed();
  session.value = { kind: "none", why: isProven ? ENDED : NOT_KEPT };
}

interface Refusal {
  readonly message?: string;
  readonly error_code?: string;
}

async function ask(method: string, path: string, headers: Record<string, string>): Promise<Session> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(path, { method, headers });
    text = await answer.text();
  } catch {
    return { kind: "none", why: await whyUnanswered(), isUnknown: true };
  }
  const said = saidIn(text);
  if (answer.ok) return said ?? { kind: "none", why: foreignAnswer(text), isUnknown: true };
  if (said?.message === undefined) return { kind: "none", why: foreignRefusal(answer.status, text), isUnknown: true };
  return { kind: "none", why: whyOf(answer, said) };
}

/** Undefined: it is no answer of the platform. */
function saidIn(text: string): (Session & Refusal) | undefined {
  try {
    return JSON.parse(text) as Session & Refusal;
  } catch {
    return undefined;
  }
}

/** All that the platform said, with the id under which its log has the request. */
function whyOf({ status, headers }: Response, { message = `HTTP ${status}`, error_code: code }: Refusal): string {
  const requestId = headers.get("x-request-id");
  if (requestId === null) return message;
  return `${message} (${[String(status), code].filter(Boolean).join(" ")} · request_id ${requestId})`;
}
