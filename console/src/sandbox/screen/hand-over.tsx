/**
 * Hands the screen over to somebody else: noVNC's page of the sandbox, in a window of its own, with passwords. What a sandbox serves is on
 * its own host name, and never in this page.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { useDoing } from "../../base/loaded.ts";
import { Code, Failure } from "../../parts/parts.tsx";
import { portAddress } from "../ports/port-address.ts";
import type { TabProps } from "../tab.ts";
import { endHandOver, handScreenOver } from "./run.ts";
import { type Passwords, PLACES } from "./scripts.ts";

export function HandOver({ sandbox }: Pick<TabProps, "sandbox">) {
  const { sandboxID: id } = sandbox;
  const doing = useDoing();
  const [passwords, setPasswords] = useState<Passwords | undefined>(undefined);
  const left = useRef(new AbortController());
  useEffect(() => {
    left.current = new AbortController();
    return () => left.current.abort();
  }, []);
  const begin = () => doing.run(async () => setPasswords(await handScreenOver(id, left.current.signal)));
  const end = () =>
    doing.run(async () => {
      await endHandOver(id, left.current.signal);
      setPasswords(undefined);
    });
  return (
    <details>
      <summary>Hand the screen over to somebody else</summary>
      <p class="small">Makes two passwords, and links to a page of the sandbox that asks for one.</p>
      <div class="bar">
        <button type="button" class="quiet" disabled={doing.busy} onClick={begin}>
          {passwords === undefined ? "Make passwords and links" : "New passwords"}
        </button>
        <button type="button" class="quiet" disabled={doing.busy} onClick={end}>
          End the hand-over
        </button>
        {doing.busy && <span class="small">a moment …</span>}
      </div>
      <Failure of={doing.error} />
      {passwords !== undefined && <Ways sandbox={sandbox} passwords={passwords} />}
    </details>
  );
}

/** Where noVNC's page is, and what it asks for. No password is in an address: noVNC's page has a field for it. */
function Ways({ sandbox, passwords }: { readonly sandbox: SandboxDetail; readonly passwords: Passwords }) {
  const isPublic = sandbox.network?.allowPublicTraffic !== false;
  const address = isPublic ? portAddress(sandbox, PLACES.pagePort, location.protocol) : undefined;
  const page = "/vnc.html?autoconnect=1&resize=scale";
  return (
    <>
      {address === undefined ? (
        <>
          <p>
            {isPublic
              ? "The platform has no domain, so the port has no address of its own. "
              : "The sandbox's ports ask for its traffic token, which a browser cannot send. "}
            Forward the port to your machine, and open the page there:
          </p>
          <Code
            label="Forward the port"
            text={`svc forward ${sandbox.sandboxID} ${PLACES.pagePort}:${PLACES.pagePort}\n# http://127.0.0.1:${PLACES.pagePort}${page}`}
          />
        </>
      ) : (
        <p class="bar">
          <a href={`${address}${page}`} target="_blank" rel="noopener noreferrer">
            Open the screen to take over
          </a>
          <a href={`${address}${page}&view_only=1`} target="_blank" rel="noopener noreferrer">
            Open it to watch only
          </a>
        </p>
      )}
      <Code label="Password to take over" text={passwords.takes} />
      <Code label="Password to watch only" text={passwords.watches} />
      <p class="small">
        noVNC asks for the password. Both hold until “End the hand-over”, also in copies that are made meanwhile.
      </p>
    </>
  );
}
