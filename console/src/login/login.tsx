/** The log-in: one field. What is typed goes to the server once, and is kept nowhere. */

import { useEffect, useState } from "preact/hooks";
import { get } from "../base/client.ts";
import { useLoaded } from "../base/loaded.ts";
import { foundLater, logIn, type Session, session } from "../base/session.ts";
import { onSubmit, TextField } from "../parts/field.tsx";

export function Login() {
  const [secret, setSecret] = useState("");
  const [busy, setBusy] = useState(false);
  const now = session.value;
  const asked = useLoaded((signal) => get<Session>("/session", {}, signal), []);
  const provider = asked.value?.kind === "none" ? asked.value.provider : undefined;
  // The platform was away when the page opened, and is back.
  useEffect(() => {
    if (asked.value !== undefined) foundLater(asked.value);
  }, [asked.value]);
  const submit = () => {
    setBusy(true);
    void logIn(secret).then(() => {
      setSecret("");
      setBusy(false);
    });
  };
  return (
    <main class="login">
      <h1>Console</h1>
      {provider !== undefined && (
        <p>
          <a class="button main" href="/console/oidc/begin">
            Log in at {provider}
          </a>
        </p>
      )}
      <form onSubmit={onSubmit(submit)}>
        <TextField label="API key" type="password" value={secret} onValue={setSecret} required autoFocus />
        <button type="submit" class="main" disabled={busy}>
          Log in
        </button>
      </form>
      {now.kind === "none" && now.why !== undefined && (
        <p class="failure" role="alert">
          {now.why}
        </p>
      )}
      <p class="small">
        The key is in <code>.svc/env</code> as <code>SVC_API_KEY</code>, and <code>./scripts/up</code> prints a link
        that logs in once. Operators log in with the admin token.
      </p>
    </main>
  );
}
