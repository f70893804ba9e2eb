/** Asks whether a program of the sandbox may put a text into the clipboard, and shows the text. */

import { copyText } from "../../parts/copy.ts";
import { Danger } from "../../parts/parts.tsx";

export function ClipboardQuestion(props: {
  readonly text: string;
  /** What came of it, for the person. */
  readonly copied: (outcome: string) => void;
  /** The terminal asks no more. */
  readonly refuse: () => void;
}) {
  const { text, copied, refuse } = props;
  const copy = () =>
    void copyText(text).then(
      () => copied("copied to the clipboard"),
      (error: unknown) => copied(error instanceof Error ? error.message : String(error)),
    );
  return (
    <section aria-label="For the clipboard">
      <p>A program in the sandbox wants to put this into your clipboard:</p>
      <pre tabIndex={0} aria-label="Text for the clipboard" class="wanted">
        {text}
      </pre>
      <div class="acts">
        <Danger onConfirm={copy}>Copy it</Danger>
        <button type="button" onClick={refuse}>
          Do not, and do not ask again
        </button>
      </div>
    </section>
  );
}
