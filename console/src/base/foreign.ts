/** Answers that are not the platform's: a proxy in front of it has a page for errors, or a log-in of its own. */

/** Statuses with which a proxy says that it gets no answer of the platform: those above 504 are Cloudflare's. */
export const UNREACHED: ReadonlySet<number> = new Set([502, 503, 504, 520, 521, 522, 523, 524, 530]);

const NO_ANSWER = "The platform does not answer. Is it running, and is this machine connected?";

const LOG_IN = "A proxy in front of the platform asks for a log-in of its own: load the page again to log in there.";
const MOST_SAID = 200;
const PROBE_MS = 3_000;

/** What a refusal means that has no message of the platform. @param text what has come */
export function foreignRefusal(status: number, text: string): string {
  const said = saidBy(text);
  const words = said === "" ? `HTTP ${status}` : `${said}, HTTP ${status}`;
  if (status === 401 || status === 407) return `${LOG_IN} (${words})`;
  if (status === 413)
    return `A proxy in front of the platform takes no request of this size: it can be told to (nginx: client_max_body_size). (${words})`;
  if (UNREACHED.has(status)) return `A proxy in front of the platform gets no answer of it. (${words})`;
  return said === "" ? words : `Something in front of the platform has answered: ${words}`;
}

/** What an answer means that should have been JSON. */
export function foreignAnswer(text: string): string {
  const said = saidBy(text);
  return said === "" ? LOG_IN : `${LOG_IN} (${said})`;
}

/** Whether it is a page of HTML, which the platform answers to no request of this page. */
export function isPage(text: string): boolean {
  return text.trimStart().startsWith("<");
}

/** Why a request has got no answer: a page may not follow a redirection to another host, as to the log-in of a proxy. */
export async function whyUnanswered(): Promise<string> {
  try {
    const signal = AbortSignal.timeout(PROBE_MS);
    const { type } = await fetch("/console/api/session", { redirect: "manual", signal });
    return type === "opaqueredirect" ? LOG_IN : NO_ANSWER;
  } catch {
    return NO_ANSWER;
  }
}

/** Of a page its title; text as it is. */
function saidBy(text: string): string {
  const title = /<title[^>]*>([^<]*)/i.exec(text)?.[1];
  const said = title ?? (isPage(text) ? "" : text);
  return said.replaceAll(/\s+/g, " ").trim().slice(0, MOST_SAID);
}
