/** Dark or light: the system's choice until somebody makes another one here. */

import { signal } from "@preact/signals";

export type Theme = "dark" | "light";

const KEPT = "theme";
const kept = localStorage.getItem(KEPT);
const system: Theme = matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";

export const theme = signal<Theme>(kept === "dark" || kept === "light" ? kept : system);
document.documentElement.dataset["theme"] = theme.value;

export function changeTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = theme.value;
  localStorage.setItem(KEPT, theme.value);
}
