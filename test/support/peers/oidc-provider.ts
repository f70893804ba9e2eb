/**
 * A provider of OpenID Connect on this machine, for tests of log-ins: real codes, tokens and signatures. Whoever names a person
 * on its log-in page is that person.
 */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type AccountClaims, Provider } from "oidc-provider";

export const CLIENT = { id: "console-of-the-tests", secret: "a-secret-of-the-console-of-the-tests" } as const;

interface OidcPeer {
  readonly issuer: string;
  /** Logs a person in at an address that a client has sent them to. Resolves with the address to which the provider sends them back. */
  logIn(authorizationUrl: string, person: string): Promise<string>;
  stop(): Promise<void>;
}

/** @param people claims of each person */
export async function startOidcProvider(
  people: Readonly<Record<string, object>>,
  redirectUris: string[],
): Promise<OidcPeer> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: redirectUris }],
    claims: { openid: ["sub"], profile: ["groups", "preferred_username"], email: ["email", "email_verified"] },
    cookies: { keys: ["a-key-of-the-tests"] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => Promise.resolve({ sub, ...people[sub] } as AccountClaims),
    }),
    pkce: { required: () => true },
    async loadExistingGrant({ oidc }) {
      const { client, session } = oidc;
      const grant = new oidc.provider.Grant({ clientId: client?.clientId ?? "", accountId: session?.accountId ?? "" });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });
  const answer = provider.callback();
  server.on("request", (request, response) => void answer(request, response));
  return {
    issuer,
    async logIn(authorizationUrl, person) {
      const cookies = new Map<string, string>();
      const ask = async (url: string, form?: Record<string, string>) => {
        const answer = await fetch(url, {
          redirect: "manual",
          headers: { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") },
          ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
        });
        for (const cookie of answer.headers.getSetCookie()) {
          const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
          cookies.set(name, value);
        }
        return answer;
      };
      const toLogin = (await ask(authorizationUrl)).headers.get("location");
      if (toLogin === null) throw new Error("the provider did not send the person to its log-in page");
      const page = new URL(toLogin, issuer).href;
      let answer = await ask(page, { prompt: "login", login: person, password: "any" });
      for (let steps = 0; steps < 5; steps++) {
        const to = new URL(answer.headers.get("location") ?? "", issuer).href;
        if (!to.startsWith(issuer)) return to;
        answer = await ask(to);
      }
      throw new Error("the provider did not send the person back");
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
