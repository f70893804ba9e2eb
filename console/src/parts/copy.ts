/** Copies text, also where the browser has no clipboard for the page. */

const NOT_COPIED = "The browser has not copied it: mark the text, and copy it by hand.";

/** @throws {Error} the browser does not allow it */
export async function copyText(text: string): Promise<void> {
  // Browsers have it where TLS is, and on this machine.
  const { clipboard } = navigator as { readonly clipboard?: Pick<Clipboard, "writeText"> };
  if (clipboard !== undefined) {
    await clipboard.writeText(text).catch((cause: unknown) => {
      throw new Error(NOT_COPIED, { cause });
    });
    return;
  }
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "out-of-view";
  document.body.append(area);
  area.select();
  // Nothing else copies on plain HTTP.
  const isCopied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  if (!isCopied) throw new Error(NOT_COPIED);
}
