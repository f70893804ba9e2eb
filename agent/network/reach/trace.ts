/** Finds in the output of `nft monitor trace` the rule that ended a packet. Pure; never throws. */

export interface Culprit {
  readonly family: string;
  readonly table: string;
  readonly chain: string;
  /** `policy drop`, or the rule in nft's words; undefined: only its handle is known. */
  readonly rule: string | undefined;
  readonly handle: string | undefined;
}

interface Packet {
  protocol: string;
  /** Other programs of the machine, and other platforms, trace packets too. */
  sent: boolean;
  end: Culprit | undefined;
}

const MAX_RULE_CHARACTERS = 200;
const LINE = /^trace id (\w+) (\w+) (\S+) (\S+) (.*)$/;
const DROPS = /\(verdict (drop|queue|stolen)\)/;

/**
 * @param probe.table its drops do not count, because it catches what came through
 * @param probe.address source of the packets that count
 * @returns what ended the last packet of each protocol: "tcp", "udp"
 */
export function culpritsIn(
  text: string,
  probe: { readonly table: string; readonly address: string },
): ReadonlyMap<string, Culprit> {
  const from = ` ip saddr ${probe.address} `;
  const packets = new Map<string, Packet>();
  for (const line of text.split("\n")) {
    const { id, family, table, chain, rest } = readLine(line);
    if (id === "") continue;
    const packet = packets.get(id) ?? { protocol: "", sent: false, end: undefined };
    packets.set(id, packet);
    packet.protocol ||= /(tcp|udp) sport/.exec(rest)?.[1] ?? "";
    packet.sent ||= rest.includes(from);
    if (table === probe.table) continue;
    const where = { family, table, chain };
    if (/^policy drop\b/.test(rest)) packet.end = { ...where, rule: "policy drop", handle: undefined };
    else if (DROPS.test(rest)) packet.end = { ...where, ...ruleIn(rest) };
  }
  const culprits = new Map<string, Culprit>();
  for (const { protocol, sent, end } of packets.values()) if (sent && end !== undefined) culprits.set(protocol, end);
  return culprits;
}

function readLine(line: string) {
  const [, id = "", family = "", table = "", chain = "", rest = ""] = LINE.exec(line) ?? [];
  return { id, family, table, chain, rest };
}

/** nft does not know the rules that were added after it began to listen, and names their handle. */
function ruleIn(rest: string): Pick<Culprit, "rule" | "handle"> {
  const handle = /^unknown rule handle (\d+)/.exec(rest)?.[1];
  if (handle !== undefined) return { rule: undefined, handle };
  const rule = rest
    .replace(/^rule /, "")
    .replace(DROPS, "")
    .trim();
  return { rule: rule === "" ? undefined : clean(rule), handle: undefined };
}

/** The rule with this handle in the output of `nft -a list chain`. */
export function ruleByHandle(chain: string, handle: string): string | undefined {
  const line = chain.split("\n").find((one) => one.trimEnd().endsWith(`# handle ${handle}`));
  return line === undefined ? undefined : clean(line.replace(/# handle \d+\s*$/, ""));
}

/** In one line, as `evidence` of a finding. */
export function culpritText({ family, table, chain, rule, handle }: Culprit): string {
  const what =
    rule === undefined
      ? `the rule with handle ${handle ?? "unknown"}`
      : rule === "policy drop"
        ? rule
        : `rule "${rule}"`;
  return `table ${family} ${table}, chain ${chain}: ${what}`;
}

function clean(rule: string): string {
  const text = rule
    .replaceAll(/counter packets \d+ bytes \d+/g, "counter")
    .replaceAll(/[^\x20-\x7e]+/g, " ")
    .trim();
  return text.length > MAX_RULE_CHARACTERS ? `${text.slice(0, MAX_RULE_CHARACTERS)}...` : text;
}
