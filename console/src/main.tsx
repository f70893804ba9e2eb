/** Starts the page. */

import { render } from "preact";
import { App } from "./app.tsx";
import { begin } from "./base/session.ts";
import { followOtherTabs } from "./login/other-tabs.ts";

const page = document.getElementById("page");
if (page === null) throw new Error("the page has no element #page");
void begin();
followOtherTabs();
// A one-time link that is opened in a tab of the console changes nothing but this part of the address.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#code=")) location.reload();
});
render(<App />, page);
