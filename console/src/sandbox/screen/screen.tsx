/**
 * The screen of a sandbox that has one. Watching is a picture a second, through the console's own way to the sandbox's processes: the
 * page draws it and runs nothing of it. Taking over is noVNC's page of the sandbox, in a window of its own: what a sandbox
 * serves is on its own host name, and never in this page.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { SandboxDetail } from "../../../../shared/api/sandboxes/sandbox-shapes.ts";
import { time } from "../../base/format.ts";
import { useDoing } from "../../base/loaded.ts";
import { pause } from "../../base/stream.ts";
import { Code, Empty, Failure } from "../../parts/parts.tsx";
import { portAddress } from "../ports/port-address.ts";
import type { TabProps } from "../tab.ts";
import type { Size } from "./picture.ts";
import { endHandOver, handScreenOver, NoScreen, takePicture } from "./run.ts";
import { type Passwords, PLACES } from "./scripts.ts";

const EVERY_MS = 1_000;

type Shown =
  | { readonly is: "loading" }
  | { readonly is: "none" }
  | { readonly is: "picture"; readonly url: string; readonly size: Size; readonly at: string };

export function ScreenTab({ sandbox }: TabProps) {
  const { shown, error } = usePictures(sandbox.sandboxID);
  if (shown.is === "none")
    return (
      <Empty title="This sandbox has no screen.">
        <p>
          Sandboxes of the template <code>desktop</code>, and of templates that are made of it, have one.
        </p>
      </Empty>
    );
  return (
    <>
      <HandOver sandbox={sandbox} />
      <p class="small" role="status">
        {shown.is === "loading" ? "loading …" : `watching, ${shown.size.width} × ${shown.size.height}`}
        {shown.is === "picture" && error !== undefined && `: the picture is that of ${time(shown.at)}`}
      </p>
      <Failure of={error} />
      {shown.is === "picture" && <img class="screen-picture" src={shown.url} alt="The sandbox's screen" />}
    </>
  );
}

/** A picture a second while the page is visible. */
function usePictures(id: string): { readonly shown: Shown; readonly error: unknown } {
  const [shown, setShown] = useState<Shown>({ is: "loading" });
  const [error, setError] = useState<unknown>(undefined);
  useEffect(() => {
    const left = new AbortController();
    setShown({ is: "loading" });
    setError(undefined);
    const round = async () => {
      try {
        const { bytes, size } = await takePicture(id, left.signal);
        if (left.signal.aborted) return false;
        const url = URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
        setShown({ is: "picture", url, size, at: new Date().toISOString() });
        setError(undefined);
      } catch (failed) {
        if (left.signal.aborted) return false;
        if (failed instanceof NoScreen) {
          setShown({ is: "none" });
          return false;
        }
        // The last picture stays, with its time.
        setError(failed);
      }
      return true;
    };
    void (async () => {
      let goesOn = true;
      while (goesOn && !left.signal.aborted) {
        if (!document.hidden) goesOn = await round();
        await pause(EVERY_MS, left.signal);
      }
    })();
    return () => left.abort();
  }, [id]);
  const url = shown.is === "picture" ? shown.url : undefined;
  useEffect(() => () => void (url !== undefined && URL.revokeObjectURL(url)), [url]);
  return { shown, error };
}

function HandOver({ sandbox }: Pick<TabProps, "sandbox">) {
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
    <>
      <div class="bar">
        <button type="button" disabled={doing.busy} onClick={begin}>
          {passwords === undefined ? "Take over" : "New passwords"}
        </button>
        <button type="button" class="quiet" disabled={doing.busy} onClick={end}>
          End what was taken over
        </button>
        {doing.busy && <span class="small">a moment …</span>}
      </div>
      <Failure of={doing.error} />
      {passwords !== undefined && <Ways sandbox={sandbox} passwords={passwords} />}
    </>
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
        noVNC asks for the password. Both hold until “End what was taken over”, also in copies that are made meanwhile.
      </p>
    </>
  );
}
