/**
 * The field in which a user changes a text: CodeMirror. It draws only the lines in view, so that a mebibyte is typed into as a
 * line is, colours what it knows, finds, and shows characters that a reader would not see. What was not changed stays as it was.
 */

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { withConstructedStyles } from "../../constructed-styles.ts";
import { hasTooManyInvisible, indentOf, languageOf } from "./languages.ts";

export interface CodeField {
  /** Puts another text in the place of all that is there, unless it is the same. */
  readonly set: (text: string) => void;
  readonly close: () => void;
}

interface Opened {
  /** The name of the field; the file's language is known by it. */
  readonly path: string;
  readonly text: string;
  readonly changed: (text: string) => void;
  /** Ctrl S, or ⌘ S. */
  readonly save: () => void;
  /** Whether the field shows the invisible characters of the text that it has got. */
  readonly showsInvisible: (are: boolean) => void;
}

/** The library keeps one sheet for the page, and puts the styles of each field into it. */
const NEVER = new AbortController().signal;

export function openField(place: HTMLElement, { path, text, changed, save, showsInvisible }: Opened): CodeField {
  let last = text;
  const told = EditorView.updateListener.of(({ docChanged, state }) => {
    if (!docChanged) return;
    last = state.doc.toString();
    changed(last);
  });
  const saves = keymap.of([
    {
      key: "Mod-s",
      preventDefault: true,
      run() {
        save();
        return true;
      },
    },
  ]);
  const invisible = new Compartment();
  const invisibleOf = (of: string): Extension => {
    const tooMany = hasTooManyInvisible(of);
    showsInvisible(!tooMany);
    return tooMany ? [] : INVISIBLE;
  };
  const extensions = [
    saves,
    told,
    EditorView.contentAttributes.of({ "aria-label": path }),
    ...LOOKS,
    invisible.of(invisibleOf(text)),
    textOf(path, text),
  ];
  let view: EditorView | undefined;
  withConstructedStyles(NEVER, () => {
    view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: place });
  });
  return {
    set(wanted) {
      if (view === undefined || wanted === last) return;
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: wanted },
        effects: invisible.reconfigure(invisibleOf(wanted)),
      });
    },
    close: () => view?.destroy(),
  };
}

/** What depends on the file. */
function textOf(path: string, text: string): Extension {
  const language = languageOf(path);
  return [indentUnit.of(indentOf(text)), language === undefined ? [] : StreamLanguage.define(language)];
}

/** Colours of the page, which have contrast in both themes. */
const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.tagName, tags.definitionKeyword], color: "var(--link)" },
  { tag: [tags.string, tags.special(tags.string), tags.attributeValue], color: "var(--accent)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--warn)" },
  { tag: [tags.comment, tags.meta], color: "var(--muted)" },
  { tag: tags.invalid, color: "var(--danger)" },
  { tag: tags.heading, fontWeight: "600" },
]);

const THEME = EditorView.theme({
  "&": { maxHeight: "60vh", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px" },
  "&.cm-focused": { outline: "2px solid var(--link)", outlineOffset: "1px" },
  ".cm-scroller": { overflow: "auto", font: "12.5px / 1.5 ui-monospace, monospace" },
  ".cm-content, .cm-gutter": { minHeight: "20em" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": { background: "var(--card)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-panels": { background: "var(--card)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-panel.cm-search :is(input, button, label)": { fontSize: "12.5px" },
  ".cm-textfield": { background: "var(--back)", border: "1px solid var(--line)" },
  ".cm-button": {
    background: "var(--card)",
    border: "1px solid var(--line)",
    "&:active": { background: "var(--back)" },
  },
  ".cm-searchMatch": { background: "none", outline: "1px solid var(--warn)" },
  ".cm-searchMatch-selected": { background: "none", outline: "2px solid var(--accent)" },
  ".cm-specialChar": { color: "var(--danger)" },
  "&.cm-focused .cm-matchingBracket": { background: "none", outline: "1px solid var(--muted)" },
  "&.cm-focused .cm-nonmatchingBracket": { background: "none", outline: "1px solid var(--danger)" },
});

/** Tab is not among the keys: it leaves the field, as everywhere on the page. */
const LOOKS: readonly Extension[] = [
  lineNumbers(),
  EditorView.lineWrapping,
  history(),
  bracketMatching(),
  search({ top: true }),
  syntaxHighlighting(COLOURS),
  THEME,
  keymap.of([...searchKeymap, ...historyKeymap, ...defaultKeymap]),
];

const INVISIBLE: Extension = highlightSpecialChars({ render: drawn });

/** CodeMirror draws this element in place of an invisible character, or of one that reverses the direction of the text. */
function drawn(_code: number, description: string | null, sign: string): HTMLElement {
  const shown = document.createElement("span");
  shown.className = "cm-specialChar";
  shown.textContent = sign;
  shown.title = description ?? "";
  // A reader for blind people tells the name of what has a role alone.
  shown.role = "img";
  shown.ariaLabel = description;
  return shown;
}
