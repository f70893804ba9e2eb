/** What the browser keeps for this page. It refuses that where cookies are blocked: then what is kept lasts as long as the page. */

type Where = "localStorage" | "sessionStorage";

const here = new Map<string, string>();

export function kept(where: Where, name: string): string | undefined {
  try {
    return globalThis[where].getItem(name) ?? here.get(`${where} ${name}`);
  } catch {
    return here.get(`${where} ${name}`);
  }
}

export function keep(where: Where, name: string, value: string): void {
  here.set(`${where} ${name}`, value);
  try {
    globalThis[where].setItem(name, value);
  } catch {
    // Blocked, or full.
  }
}
