import { describe, expect, test } from "vitest";
import { planNetwork } from "../../../../agent/network/addresses.ts";
import {
  ALWAYS_DENIED,
  closeCommand,
  forgetCommand,
  openCommand,
  pinCommand,
  tableText,
} from "../../../../agent/network/firewall-rules.ts";

const plan = planNetwork("svc", "10.213.0.0/16");
const open = { link: "svc-2", address: "10.213.0.2", open: true };
const closed = { link: "svc-3", address: "10.213.0.3", open: false };

function chain(text: string, name: string): string[] {
  const body = new RegExp(`chain ${name} \\{\\n([^}]*(?:\\{[^}]*\\}[^}]*)*)\\n {2}\\}`).exec(text)?.[1] ?? "";
  return body.split("\n").map((line) => line.trim());
}

describe("the table", () => {
  const text = tableText(plan, [open, closed]);

  test("is replaced in one transaction", () => {
    expect(text.startsWith("add table inet svc\ndelete table inet svc\ntable inet svc {")).toBe(true);
  });

  test("names each slot as elements only: its rules do not grow with the sandboxes", () => {
    const rules = (slots: number) =>
      tableText(
        plan,
        Array.from({ length: slots }, (_, index) => ({ ...open, link: `svc-${index + 2}` })),
      ).split("\n").length;
    expect(rules(200)).toBe(rules(1));
  });

  test("pins every slot and opens the open ones", () => {
    expect(text).toContain('elements = { "svc-2" . 10.213.0.2, "svc-3" . 10.213.0.3 }');
    expect(text).toContain('elements = { "svc-2" }');
  });

  test("decides about a sandbox's packets in this order, and denies what is left", () => {
    expect(chain(text, "out")).toEqual([
      "meta nfproto != ipv4 drop",
      "iifname . ip saddr != @pinned drop",
      'oifname "svc-*" drop',
      "ip daddr @denied drop",
      "meta l4proto != { tcp, udp } drop",
      "th dport { 53, 853 } drop",
      "iifname @open accept",
      "drop",
    ]);
  });

  test("lets a sandbox speak to the host for replies and names only", () => {
    expect(chain(text, "local")).toEqual([
      "meta nfproto != ipv4 drop",
      "iifname . ip saddr != @pinned drop",
      "ct direction reply ct state established accept",
      "ip daddr 10.213.0.1 meta l4proto { tcp, udp } th dport 53 iifname @open accept",
      "drop",
    ]);
  });

  test("denies what design.md names, and its own subnet", () => {
    expect(ALWAYS_DENIED).toEqual(
      expect.arrayContaining([
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "224.0.0.0/4",
        "0.0.0.0/8",
      ]),
    );
    expect(tableText(planNetwork("x", "203.0.113.0/24"), [])).toContain("240.0.0.0/4, 203.0.113.0/24 }");
  });

  test("without slots has empty sets", () => {
    expect(tableText(plan, [])).not.toContain('"svc-2"');
    expect(tableText(plan, [])).not.toContain("elements = {  }");
  });
});

test("changes are one line each, and taking away succeeds when nothing is there", () => {
  expect(pinCommand(plan, open)).toBe('add element inet svc pinned { "svc-2" . 10.213.0.2 }');
  expect(openCommand(plan, open)).toBe('add element inet svc open { "svc-2" }');
  expect(closeCommand(plan, open)).toBe(
    'add element inet svc open { "svc-2" }; delete element inet svc open { "svc-2" }',
  );
  expect(forgetCommand(plan, open)).toContain("delete element inet svc pinned");
  for (const command of [pinCommand, openCommand, closeCommand, forgetCommand]) {
    expect(command(plan, open)).not.toContain("\n");
  }
});
