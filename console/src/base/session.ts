/** Who is logged in. The cookie itself is out of reach of this code. */

import { computed, signal } from "@preact/signals";
import { forgetPerformed } from "./performed.ts";

type Scope = "read" | "sandboxes" | "templates" | "admin";

export type Session =
  | { readonly kind: "asking" }
  | { readonly kind: "none"; readonly why?: string; readonly provider?: string }
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

/** Exchanges an API key, or an operator's token, for a cookie. */
export async function logIn(secret: string): Promise<void> {
  const name = /^(svc|e2b)_/.test(secret) ? "x-api-key" : "x-admin-token";
  become(await ask("POST", "/console/login", { [name]: secret }));
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

/** A request was refused because nobody is logged in any more. */
export function sessionEnded(): void {
  if (session.value.kind === "none") return;
  forgetPerformed();
  session.value = { kind: "none", why: "The session has ended. Log in again to go on." };
}

interface Refusal {
  readonly message?: string;
  readonly error_code?: string;
}

async function ask(method: string, path: string, headers: Record<string, string>): Promise<Session> {
  try {
    const answer = await fetch(path, { method, headers });
    const body = (await answer.json()) as Session & Refusal;
    return answer.ok ? body : { kind: "none", why: whyOf(answer, body) };
  } catch {
    return { kind: "none", why: "The platform does not answer. Is it running?" };
  }
}

/** All that the platform said, with the id under which its log has the request. */
function whyOf({ status, headers }: Response, { message = `HTTP ${status}`, error_code: code }: Refusal): string {
  const requestId = headers.get("x-request-id");
  if (requestId === null) return message;
  return `${message} (${[String(status), code].filter(Boolean).join(" ")} · request_id ${requestId})`;
}
