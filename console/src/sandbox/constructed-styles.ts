/**
 * The terminal and the field for files write their own style sheets into `<style>` elements, which the page's policy forbids.
 * While one of them opens, each such element is an empty one whose text goes to a constructed style sheet.
 */

/** @param ended takes the sheets away again */
export function withConstructedStyles(ended: AbortSignal, open: () => void): void {
  const create = document.createElement.bind(document);
  const replaced = (tag: string) => (tag === "style" ? sheetElement(create("i"), ended) : create(tag));
  document.createElement = replaced;
  try {
    open();
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}

function sheetElement(element: HTMLElement, ended: AbortSignal): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  ended.addEventListener("abort", () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
  });
  element.hidden = true;
  Object.defineProperty(element, "textContent", {
    set(text: string) {
      sheet.replaceSync(text);
    },
  });
  return element;
}
