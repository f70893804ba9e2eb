/** Calls the program that stands for the first process of a shell (scripts/host/runtime/svc-shell.c). */

import { connect } from "node:net";

/** The words of svc-runc are one line; its reason is cut to some hundred characters. */
const MOST_CHARACTERS = 64 * 1024;

/** Resolves to the process id that it answers. @throws with the words that it answers instead */
export function callShell(socketPath: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(socketPath);
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      if (text.length < MOST_CHARACTERS) text += chunk;
    });
    socket.once("error", (cause) => reject(new Error("the shell does not answer", { cause })));
    // Also after an error, which was first then.
    socket.once("close", () => {
      const pid = Number(/^ok (\d+)\n$/.exec(text)?.[1] ?? 0);
      if (pid > 0) resolve(pid);
      else reject(new Error(text === "" ? "the shell ended before it answered" : text.trim()));
    });
  });
}
