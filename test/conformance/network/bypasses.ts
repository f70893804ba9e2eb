/** Shared by the files about known classes of bypass: the test internet, counts of arrived packets, the list of results. */

import { afterAll, afterEach } from "vitest";
import { openInternet } from "../../support/internet/internet.ts";
import { NOTHING } from "../../support/sandbox/egress.ts";

export const internet = openInternet();
export const GOOGLE = { allowOut: ["google.example"], denyOut: NOTHING };

/** Counts the packets to an address that no other test uses. */
export const arrived = (address: string, match: object = {}) => internet.packets("border", { address, ...match });

/** Prints the classes of a file with their results when the file's tests are over. */
export function listResults(): void {
  const results: { class: string; tried: string; result: string }[] = [];
  afterEach(({ task }) => {
    const [name = "", tried = ""] = task.name.split(": ");
    const good = task.name.includes("(seen, not stopped)") ? "seen in the log" : "stopped";
    results.push({ class: name, tried, result: task.result?.state === "fail" ? "NOT STOPPED" : good });
  });
  afterAll(() => {
    const width = Math.max(...results.map((one) => one.class.length));
    console.log(results.map((one) => `${one.class.padEnd(width)}  ${one.result.padEnd(15)}  ${one.tried}`).join("\n"));
  });
}
