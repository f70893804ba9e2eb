/** Dark or light: the system's choice until somebody makes another one here. */

import { signal } from "@preact/signals";
import { keep, kept } from "./kept.ts";

export type Theme = "dark" | "light";

const KEPT = "theme";
const chosen = kept("localStorage", KEPT);
const system: Theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";

export const theme = signal<Theme>(chosen === "dark" || chosen === "light" ? chosen : system);
document.documentElement.dataset["theme"] = theme.value;

export function changeTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = theme.value;
  keep("localStorage", KEPT, theme.value);
}
