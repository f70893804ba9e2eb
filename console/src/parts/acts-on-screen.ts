/** What can be done on the screen that is shown, by the names of its buttons, tabs and links that look like buttons. */

/** What of an element is needed here. */
interface Pressable {
  readonly textContent: string | null;
  getAttribute(name: string): string | null;
  focus(): void;
  click(): void;
}

interface Shown {
  querySelectorAll(selector: string): Iterable<Pressable>;
}

interface ScreenAct {
  readonly name: string;
  /**
   * Presses it, unless it has become that of another object meanwhile. A button for what cannot be taken back then asks, and has
   * the focus for the answer.
   */
  readonly run: () => void;
}

const ACTS = "button:not(:disabled), a.button, [role=tab]";

/** Each name once. @param screen undefined: none is shown */
export function actsOnScreen(screen: Shown | null): readonly ScreenAct[] {
  const found = new Map<string, ScreenAct>();
  for (const each of screen?.querySelectorAll(ACTS) ?? []) {
    const name = nameOf(each);
    if (name === "" || found.has(name)) continue;
    found.set(name, {
      name,
      run() {
        if (nameOf(each) !== name) return;
        each.focus();
        each.click();
      },
    });
  }
  return [...found.values()];
}

function nameOf(element: Pressable): string {
  return (element.getAttribute("aria-label") ?? element.textContent ?? "").trim();
}
