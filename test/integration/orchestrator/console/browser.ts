/** A browser without a screen: it keeps the console's cookie, and says of its requests what a browser says. */

import type { Cluster } from "../../../support/cluster/cluster.ts";

export interface Browser {
  /** Sends as the console's page does; `headers` replaces or, with undefined, leaves out headers. */
  ask(method: string, path: string, options?: Options): Promise<BrowserAnswer>;
  logIn(key: string): Promise<BrowserAnswer>;
  cookie: string | undefined;
}

interface Options {
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
}

interface BrowserAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: unknown;
}

export function newBrowser(cluster: Pick<Cluster, "url">): Browser {
  const browser: Browser = {
    cookie: undefined,
    async ask(method, path, { headers = {}, body } = {}) {
      const sent: Record<string, string | undefined> = {
        origin: cluster.url,
        "sec-fetch-site": "same-origin",
        cookie: browser.cookie,
        "content-type": body === undefined ? undefined : "application/json",
        ...headers,
      };
      const given = Object.entries(sent).filter((pair): pair is [string, string] => pair[1] !== undefined);
      const answer = await fetch(`${cluster.url}${path}`, {
        method,
        redirect: "manual",
        headers: given,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, body: parsed(text) };
    },
    async logIn(key) {
      const answer = await browser.ask("POST", "/console/login", { headers: { "x-api-key": key } });
      browser.cookie = answer.headers.getSetCookie().at(-1)?.split(";")[0];
      return answer;
    },
  };
  return browser;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
