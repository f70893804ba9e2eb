/**
 * The egress process: started by the agent through svc-egress, which confines it, and ended with the agent. messages.ts
 * has the messages. Exit codes: 0 stopped, 1 any failure that makes it useless; the agent starts another one.
 */

import { readFileSync } from "node:fs";
import { warnOfFewDescriptors } from "../../shared/program/descriptors.ts";
import { createLog, LOG_LEVELS, type LogLevel } from "../../shared/program/log.ts";
import type { FromEgress, ToEgress } from "./channel/messages.ts";
import { openEgress } from "./egress.ts";
import { looseEnds } from "./launch/confinement.ts";
import { transform } from "./rewrite/transform.ts";

const STOP_LIMIT_MS = 2_000;

const asked = process.env["SVC_LOG_LEVEL"];
const level = LOG_LEVELS.find((name): name is LogLevel => name === asked) ?? "info";
const log = createLog({ component: "egress", level });

const die = (error: unknown, what: string) => {
  log.fatal({ err: error }, what);
  process.exit(1);
};
process.on("uncaughtException", (error) => die(error, "uncaught exception"));

warnOfFewDescriptors(log);
const send = (message: FromEgress) => {
  // A message after the end of the channel is dropped; "disconnect" below ends the process.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
};
const [redirected = 0, udp = 0, tcp = 0] = (process.env["SVC_EGRESS_SOCKETS"] ?? "").split(",").map(Number);
if (!process.connected || ![redirected, udp, tcp].every((fd) => Number.isInteger(fd) && fd > 2)) {
  die(new Error("no channel or no sockets"), "not started by the agent through svc-egress");
}
// The process reads hostile input: unconfined it could harm the node, which is worse than no names and connections.
const loose = looseEnds(readFileSync("/proc/self/status", "utf8"));
if (loose.length > 0) die(new Error(loose.join(", ")), "not confined: start it by svc-egress");
process.title = "svc-egress";

const egress = openEgress({ sockets: { redirected, dns: { udp, tcp } }, send, transform, log });
process.on("message", (message) => {
  egress.take(message as ToEgress).catch((error: unknown) => die(error, "could not begin"));
});
const stop = () => {
  setTimeout(() => process.exit(1), STOP_LIMIT_MS);
  egress.stop().then(
    () => process.exit(0),
    (error: unknown) => die(error, "could not stop"),
  );
};
// Without the agent this process does not know the current policies, so it ends, and every flow with it.
process.once("disconnect", () => process.exit(0));
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
