/**
 * The document as the terminal sees it. The terminal writes its own style sheets into `<style>` elements, which the page's
 * policy forbids; here such an element is an empty one whose text goes to a constructed style sheet.
 */

/** @param ended takes the sheets away again */
export function styledDocument(ended: AbortSignal): Document {
  return new Proxy(document, {
    get(target, name) {
      if (name === "createElement")
        return (tag: string) => (tag === "style" ? sheetElement(ended) : target.createElement(tag));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function sheetElement(ended: AbortSignal): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  ended.addEventListener("abort", () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
  });
  const element = document.createElement("i");
  element.hidden = true;
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  return element;
}
