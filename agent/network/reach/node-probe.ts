/** The probe of this node, as its settings want it. */

import type { AgentConfig } from "../../config.ts";
import { runCommand } from "../../host/command.ts";
import { nativeProgram } from "../../host/native-program.ts";
import type { Network } from "../host-network.ts";
import { hostProbe, type ReachProbe } from "./host-probe.ts";

/** Undefined: the operator wants no probes. */
export function nodeProbe(config: AgentConfig, network: Network): ReachProbe | undefined {
  const address = config.networkProbeAddress;
  const sender = once(() => nativeProgram(runCommand, "network/svc-network-probe", config.runDir));
  return address === "" ? undefined : hostProbe(network.plan, runCommand, network, { address, sender });
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () =>
    (done ??= work().catch((error: unknown) => {
      done = undefined;
      throw error;
    }));
}
