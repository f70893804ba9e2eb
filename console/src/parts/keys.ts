/** Recognizes the keys that people press, with every layout and input method. Pure. */

interface Pressed {
  /** Absent when a browser fills in a form, and says that by an event without a key. */
  readonly key?: string;
  readonly code?: string;
  readonly ctrlKey?: boolean;
  readonly metaKey?: boolean;
  readonly altKey?: boolean;
  readonly isComposing?: boolean;
  readonly keyCode?: number;
}

/** What browsers tell instead of a key that an input method takes. */
const TAKEN = 229;

/** Whether an input method takes the key: Enter then ends a word of Japanese or Chinese. Safari tells it by the code alone. */
export function isOfInputMethod({ isComposing, keyCode }: Pressed): boolean {
  return isComposing === true || keyCode === TAKEN;
}

/** Ctrl K or ⌘ K. Where the layout has no Latin letters the key counts that is K elsewhere. */
export function isCtrlK({ key = "", code, ctrlKey, metaKey, altKey }: Pressed): boolean {
  if (ctrlKey !== true && metaKey !== true) return false;
  if (key.toLowerCase() === "k") return true;
  // With Alt a key of a Latin layout has another letter, too.
  return altKey !== true && code === "KeyK" && /^[^\p{ASCII}]$/u.test(key);
}
