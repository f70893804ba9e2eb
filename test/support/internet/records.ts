/** The events that the servers of the test internet saw, in order, so that a test can ask for those after its begin. */

export type Happening =
  | { readonly is: "question"; readonly name: string; readonly type: string; readonly server: string }
  | {
      readonly is: "connection";
      readonly service: string;
      readonly address: string;
      readonly port: number;
      readonly first?: string;
    }
  | {
      readonly is: "request";
      readonly address: string;
      readonly port: number;
      readonly sni?: string;
      readonly host: string;
      readonly method: string;
      readonly url: string;
      readonly headers: Readonly<Record<string, string | readonly string[]>>;
      readonly httpVersion: string;
    }
  | {
      readonly is: "socks";
      readonly server: string;
      readonly atyp: "ipv4" | "domain" | "ipv6";
      readonly host: string;
      readonly port: number;
      readonly username?: string;
      readonly reply: number;
    }
  | { readonly is: "datagram"; readonly address: string; readonly port: number; readonly text: string }
  | { readonly is: "half-closed"; readonly address: string; readonly port: number; readonly receivedAfter: number };

export interface Records {
  add(record: Happening): void;
  since(position: number): { readonly position: number; readonly records: readonly Happening[] };
}

/** The records are bounded, because a flood must not fill the internet's memory. */
export function records(limit = 50_000): Records {
  const all: Happening[] = [];
  let dropped = 0;
  return {
    add(record) {
      all.push(record);
      if (all.length > limit) dropped += all.splice(0, limit / 2).length;
    },
    since: (position) => ({ position: dropped + all.length, records: all.slice(Math.max(0, position - dropped)) }),
  };
}
