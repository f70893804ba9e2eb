/** The question before a one-time link logs in: whom it logs in, at which address, and what that means. */

import { useEffect, useRef, useState } from "preact/hooks";
import { acceptLink, declineLink, type LinkOffer, type Session } from "../base/session.ts";
import { outcomeOf, PAUSE_MS } from "../parts/confirmation.ts";

export function LoginByLink({ offer }: { readonly offer: LinkOffer }) {
  const { project, key } = offer.whose;
  const { before } = offer;
  const [busy, setBusy] = useState(false);
  const [shownAt] = useState(() => performance.now());
  const [takesAnswer, setTakesAnswer] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    button.current?.focus();
    const timer = setTimeout(() => setTakesAnswer(true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, []);
  // A page that has opened this one may have asked for presses at this place, so those of the first moment do nothing.
  const press = ({ timeStamp: at, detail: inSeries }: MouseEvent) => {
    if (outcomeOf(shownAt, { at, inSeries }) !== "acts") return;
    setBusy(true);
    void acceptLink(offer);
  };
  return (
    <main class="login">
      <h1>Log in by this link?</h1>
      <p>
        The link that was opened logs this browser in at <strong>{location.host}</strong> with an API key, so that
        nobody has to type it:
      </p>
      <dl class="facts">
        <div>
          <dt>Project</dt>
          <dd>{project.name}</dd>
        </div>
        <div>
          <dt>Key</dt>
          <dd>
            {key.name} · <code>{key.mask}</code>
          </dd>
        </div>
        <div>
          <dt>May</dt>
          <dd>{key.scopes.join(", ")}</dd>
        </div>
      </dl>
      {before.kind !== "none" && <p>{loggedIn(before)} The link ends that log-in in this browser.</p>}
      <p id="whose-link">
        Go on only if the link is from <code>./scripts/up</code> or from somebody whose project you mean to use: whoever
        made it sees what you do and store there.
      </p>
      <div class="acts">
        <button
          type="button"
          class="main"
          ref={button}
          disabled={busy}
          aria-disabled={takesAnswer ? undefined : true}
          aria-describedby="whose-link"
          onClick={press}
          onKeyDown={(event) => {
            if (event.key === "Enter" && event.repeat) event.preventDefault();
          }}
        >
          Log in as {key.name} of {project.name}
        </button>
        <button type="button" disabled={busy} onClick={() => declineLink(offer)}>
          {before.kind === "none" ? "Do not use the link" : "Stay as I am"}
        </button>
      </div>
    </main>
  );
}

function loggedIn(now: Session): string {
  if (now.kind === "person") return `You are logged in as ${now.name}.`;
  return now.kind === "key" ? `You are logged in to ${now.project.name}.` : "You are logged in as an operator.";
}
