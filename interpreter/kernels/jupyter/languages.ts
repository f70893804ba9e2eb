/** How the kernels of Python and R start and make silent changes. */

import { join } from "node:path";
import { asciiJson } from "../../json/ascii.ts";
import type { Changes } from "../kernel.ts";
import type { JupyterLanguage } from "./jupyter-kernel.ts";

/** @param folder the folder with `launch.py`, which configures ipykernel */
export function python(program: string, folder: string): JupyterLanguage {
  return {
    command: (connectionFile) => [program, join(folder, "launch.py"), "-f", connectionFile],
    changeCode: pythonChange,
  };
}

/** JSON in JSON: an ASCII string of JSON is also one of Python, with the same meaning. */
function pythonChange(changes: Changes): string {
  return `__import__("svc_kernel").refresh(${asciiJson(asciiJson(changes))})`;
}

/** IRkernel: Debian's r-cran-irkernel. */
export function r(program: string): JupyterLanguage {
  return {
    command: (connectionFile) => [program, "--slave", "-e", "IRkernel::main()", "--args", connectionFile],
    changeCode: rChange,
  };
}

function rChange({ set, remove, cwd, reseed }: Changes): string {
  const lines = Object.entries(set).map(
    ([name, value]) => `do.call(Sys.setenv, setNames(list(${rString(value)}), ${rString(name)}))`,
  );
  for (const name of remove) lines.push(`Sys.unsetenv(${rString(name)})`);
  if (cwd !== null) lines.push(`setwd(${rString(cwd)})`);
  if (reseed) lines.push("set.seed(NULL)");
  return `invisible({${lines.join("\n")}})`;
}

/** R has no escape for half a character, so that each character is written as its code point. */
function rString(text: string): string {
  const signs = Array.from(text, (sign) => {
    const code = sign.codePointAt(0) ?? 0;
    return code > 0x1f && code < 0x7f && sign !== '"' && sign !== "\\" ? sign : `\\U{${code.toString(16)}}`;
  });
  return `"${signs.join("")}"`;
}
