/** Ports that programs of the sandbox listen at, as addresses to open. A port is on a host name of its own, never on the console's. */

import { useState } from "preact/hooks";
import { useLoaded } from "../../base/loaded.ts";
import { TextField } from "../../parts/field.tsx";
import { Failure, Table } from "../../parts/parts.tsx";
import { follow, fromBase64 } from "../envd.ts";
import type { TabProps } from "../tab.ts";
import { type Listening, listeningOf } from "./listening.ts";
import { portAddress } from "./port-address.ts";

interface Message {
  readonly event?: { readonly data?: { readonly stdout?: string } };
}

/** A sandbox may have very many sockets; the first ones are enough. */
const MOST_TEXT = 512 * 1024;

export function Ports({ sandbox: { sandboxID: id, domain } }: Pick<TabProps, "sandbox">) {
  const [port, setPort] = useState("8000");
  const loaded = useLoaded((signal) => listening(id, signal), [id]);
  const number = Number(port);
  const isPort = Number.isInteger(number) && number > 0 && number < 65_536;
  return (
    <>
      <h2>Ports</h2>
      <div class="bar">
        <button type="button" onClick={loaded.again}>
          Look again
        </button>
        <TextField label="Another port" type="number" value={port} onValue={setPort} />
        {isPort && <PortLink id={id} port={number} domain={domain} />}
      </div>
      <Failure of={loaded.error} />
      {loaded.value?.length === 0 && <p class="small">No program listens at a port.</p>}
      {loaded.value !== undefined && loaded.value.length > 0 && (
        <Table
          label="Ports"
          items={loaded.value}
          keyOf={({ port: each }) => String(each)}
          columns={[
            { name: "Port", show: ({ port: each }) => each },
            { name: "Listens at", show: ({ at }) => at },
            { name: "User", show: ({ uid }) => (uid === 0 ? "root" : uid) },
            { name: "Opens", show: ({ port: each }) => <PortLink id={id} port={each} domain={domain} /> },
          ]}
        />
      )}
    </>
  );
}

function PortLink(props: { readonly id: string; readonly port: number; readonly domain: string | null | undefined }) {
  const { id, port, domain } = props;
  const url = portAddress({ sandboxID: id, domain }, port, location.protocol);
  if (url === undefined) return null;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {url}
    </a>
  );
}

/** Reads the kernel's tables by a program in the sandbox. @throws {Failed} */
async function listening(id: string, signal: AbortSignal): Promise<readonly Listening[]> {
  const process = { cmd: "/bin/cat", args: ["/proc/net/tcp", "/proc/net/tcp6"] };
  const decoder = new TextDecoder();
  let table = "";
  for await (const { event } of follow<Message>(id, "process.Process/Start", { process }, signal)) {
    const { stdout } = event?.data ?? {};
    if (stdout !== undefined) table += decoder.decode(fromBase64(stdout), { stream: true });
    if (table.length > MOST_TEXT) break;
  }
  return listeningOf(table);
}
