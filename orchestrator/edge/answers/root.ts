/**
 * The edge's answer to a request that names no sandbox. Programs get the one line that the wire rules fix; a person who
 * opens the bare address also reads what this address is and where the documentation is. Pure.
 */

import { headerValue } from "../../../shared/proxy/raw-headers.ts";
import { type Answer, htmlAnswer, jsonAnswer, textAnswer } from "./answers.ts";
import { isNavigation } from "./navigation.ts";

interface UnaddressedRequest {
  readonly method?: string | undefined;
  readonly rawHeaders: readonly string[];
}

interface Unaddressed {
  readonly path: string;
  /** What is missing, in the words of the wire rules. */
  readonly message: string;
  /** Undefined: the edge does not know under which address clients reach the API. */
  readonly docsUrl: string | undefined;
}

const STATUS = 400;
const WHAT = "This is the address of the sandboxes of a sandbox platform, and the request names no sandbox.";
const ADVICE =
  "Use the host name <port>-<sandbox id>.<domain>, or the headers E2b-Sandbox-Id and E2b-Sandbox-Port. The API has another address.";
/** User agents of programs that people use at a terminal. */
const TERMINAL = /^(?:curl|wget|httpie)\//i;

export function unaddressedAnswer(
  { method, rawHeaders }: UnaddressedRequest,
  { path, message, docsUrl }: Unaddressed,
): Answer {
  const bare = (method === "GET" || method === "HEAD") && path === "/";
  if (!bare) return textAnswer(STATUS, message);
  if (isNavigation(rawHeaders)) {
    const link = docsUrl === undefined ? {} : { link: { href: docsUrl, text: "Documentation" } };
    return htmlAnswer({ title: "Sandboxes", what: WHAT, advice: ADVICE, status: STATUS, ...link });
  }
  const explanation = `${WHAT} ${ADVICE}`;
  if ((headerValue(rawHeaders, "accept") ?? "").toLowerCase().includes("application/json"))
    return jsonAnswer(STATUS, { code: STATUS, message: `${message}: ${explanation}`, docs: docsUrl });
  if (TERMINAL.test(headerValue(rawHeaders, "user-agent") ?? ""))
    return textAnswer(
      STATUS,
      `${message}\n\n${explanation}\n${docsUrl === undefined ? "" : `Documentation: ${docsUrl}\n`}`,
    );
  return textAnswer(STATUS, message);
}
