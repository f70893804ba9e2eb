/** Substitutes variables in the values of a template's steps, as in Dockerfiles. Pure: no shell sees them. */

const REFERENCE = /\\\$|\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?::([-+])([^}]*))?\}/g;

/**
 * `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}` are replaced; an unknown name is empty; `\$` is a plain `$`.
 * Everything else stays as it is: quotes, backslashes, line ends, backticks and `$(…)`.
 */
export function substitute(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replaceAll(REFERENCE, (whole: string, ...groups: (string | undefined)[]) => {
    if (whole === "\\$") return "$";
    const [plain, braced, operator, word = ""] = groups;
    const value = lookUp(plain ?? braced ?? "") ?? "";
    if (operator === "-") return value === "" ? substitute(word, lookUp) : value;
    if (operator === "+") return value === "" ? "" : substitute(word, lookUp);
    return value;
  });
}
