/** Starts the page. */

import { render } from "preact";
import { App } from "./app.tsx";
import { begin } from "./base/session.ts";

const page = document.getElementById("page");
if (page === null) throw new Error("the page has no element #page");
void begin();
render(<App />, page);
