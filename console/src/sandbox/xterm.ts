/**
 * A shell in a sandbox. What it prints is read at the pace at which it is drawn, so a flood holds up the program that makes
 * it and not the page. A lost connection is made again, to the same shell; what is on the screen stays there.
 */

import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { time } from "../base/format.ts";
import { keep, kept } from "../base/kept.ts";
import { anyOf, pause } from "../base/stream.ts";
import { withConstructedStyles } from "./constructed-styles.ts";
import { call, follow, fromBase64 } from "./envd.ts";
import { wantedText } from "./shell/clipboard.ts";
import { inputQueue } from "./shell/input-queue.ts";
import { afterFailure, waitingText } from "./shell-failure.ts";
import { untilRuns } from "./until-runs.ts";

export interface Shell {
  /** Leaves the shell running. */
  close(): void;
}

interface Telling {
  state(text: string): void;
  /** The keyboard leaves the terminal. */
  leave(): void;
  /** The sandbox has ended. */
  ended(): void;
  /** A program wants to put the text into the clipboard. */
  wants(text: string): void;
}

interface Message {
  readonly event?: {
    readonly start?: { readonly pid: number };
    readonly data?: { readonly pty?: string };
    readonly end?: { readonly status?: string };
  };
}

const SHORTEST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** Input waits for it. */
const LONGEST_RESIZE_MS = 5_000;
const SCROLLBACK = 10_000;

export function openShell(id: string, place: HTMLElement, telling: Telling): Shell {
  const left = new AbortController();
  const terminal = new Terminal({
    scrollback: SCROLLBACK,
    fontSize: 13,
    fontFamily: "ui-monospace, monospace",
    theme: { background: "#101418", foreground: "#e6e9ec" },
    minimumContrastRatio: 4.5,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  withConstructedStyles(left.signal, () => terminal.open(place));
  fit.fit();
  /**
   * `lostAt`: when the connection was lost; what the shell prints from then on is not shown. `drawnAgain`: when the shell
   * has been asked to draw its screen again.
   */
  const process: { tag: string; isOpen: boolean; lostAt: number | undefined; drawnAgain: Promise<unknown> } = {
    tag: keptTag(id),
    isOpen: false,
    lostAt: undefined,
    drawnAgain: Promise.resolve(),
  };
  const selector = () => ({ process: { tag: process.tag } });
  const input = inputQueue(
    (data, limit) => call(id, "process.Process/SendInput", { ...selector(), input: { pty: data } }, limit),
    { ...telling, ready: () => process.drawnAgain },
  );

  terminal.attachCustomKeyEventHandler((event) => {
    if (!(event.ctrlKey && event.shiftKey && event.code === "Period")) return true;
    if (event.type === "keydown") telling.leave();
    return false;
  });
  boundCounts(terminal);
  terminal.parser.registerOscHandler(52, (data) => {
    const text = wantedText(data);
    if (text !== undefined) telling.wants(text);
    return true;
  });
  terminal.onData((text) => process.isOpen && input.add(new TextEncoder().encode(text)));
  terminal.onBinary((text) => process.isOpen && input.add(Uint8Array.from(text, (each) => each.charCodeAt(0))));

  const resize = (cols: number, rows: number) =>
    call(
      id,
      "process.Process/Update",
      { ...selector(), pty: { size: { cols, rows } } },
      anyOf([left.signal, AbortSignal.timeout(LONGEST_RESIZE_MS)]),
    ).catch(() => undefined);
  terminal.onResize(({ cols, rows }) => void (process.isOpen && resize(cols, rows)));
  const watching = new ResizeObserver(() => fit.fit());
  watching.observe(place);

  /** Follows the shell to its end; a shell that is not there any more is started. */
  async function shell(isNew: boolean): Promise<void> {
    const { cols, rows } = terminal;
    const messages = isNew
      ? follow<Message>(
          id,
          "process.Process/Start",
          {
            process: { cmd: "/bin/bash", args: ["-i", "-l"], envs: { TERM: "xterm-256color", LANG: "C.UTF-8" } },
            pty: { size: { cols, rows } },
            tag: process.tag,
          },
          left.signal,
        )
      : follow<Message>(id, "process.Process/Connect", selector(), left.signal);
    for await (const { event } of messages) {
      if (event?.start !== undefined) {
        process.isOpen = true;
        // A program that draws the whole screen draws it again for another size.
        if (!isNew) process.drawnAgain = resize(cols, rows - 1).then(() => resize(cols, rows));
        const missed = isNew ? undefined : missedSince(process.lostAt);
        process.lostAt = undefined;
        telling.state([`connected, process ${event.start.pid}`, ...(missed === undefined ? [] : [missed])].join("; "));
        // A program that has the whole screen draws it again.
        if (missed !== undefined && terminal.buffer.active.type === "normal")
          await new Promise<void>((drawn) => terminal.write(`\r\n[${missed}]\r\n`, drawn));
        await process.drawnAgain;
      }
      const { pty } = event?.data ?? {};
      // The next message is read when this one is on the screen.
      if (pty !== undefined) await new Promise<void>((drawn) => terminal.write(fromBase64(pty), drawn));
      if (event?.end !== undefined) {
        process.isOpen = false;
        terminal.writeln(`\r\n[the shell has ended: ${event.end.status ?? "unknown"}; press a key for a new one]`);
        telling.state("ended");
        process.tag = newTag(id);
        await key(terminal, left.signal);
        return;
      }
    }
    throw new Error("the connection was lost");
  }

  async function run(): Promise<void> {
    let isNew = false;
    let wait = SHORTEST_WAIT_MS;
    while (!left.signal.aborted) {
      const before = performance.now();
      try {
        await shell(isNew);
        isNew = true;
        continue;
      } catch (error) {
        if (left.signal.aborted) return;
        const next = afterFailure(error, isNew);
        if (next === "start") {
          isNew = true;
          continue;
        }
        if (next === "end") {
          telling.state(error instanceof Error ? error.message : String(error));
          return;
        }
        telling.state(waitingText(error));
      }
      if (process.isOpen) process.lostAt ??= Date.now();
      // A shell may have been started whose answer was lost: a second one would have the same name.
      isNew = false;
      process.isOpen = false;
      if (performance.now() - before > LONGEST_WAIT_MS) wait = SHORTEST_WAIT_MS;
      await pause(wait, left.signal);
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
      // A sandbox that stands still or has ended refuses a request for its shell.
      const still = () => telling.state("the sandbox stands still, connecting again …");
      if (!(await untilRuns(id, { still, ended: () => telling.ended() }, left.signal))) return;
    }
  }

  void run();
  terminal.focus();
  return {
    close() {
      left.abort();
      watching.disconnect();
      terminal.dispose();
    },
  };
}

function missedSince(lostAt: number | undefined): string | undefined {
  if (lostAt === undefined) return undefined;
  const [from, to] = [new Date(lostAt), new Date()].map((at) => time(at.toISOString()));
  return `no connection from ${from} to ${to}: what was printed meanwhile is not shown`;
}

function key(terminal: Terminal, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const pressed = terminal.onKey(() => {
      pressed.dispose();
      resolve();
    });
    ended.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** The name of this tab's shell in the sandbox, which a reload of the page keeps. */
function keptTag(id: string): string {
  return kept("sessionStorage", `shell ${id}`) ?? newTag(id);
}

function newTag(id: string): string {
  const tag = `console-${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  keep("sessionStorage", `shell ${id}`, tag);
  return tag;
}

/** The most times that one sequence may have something done; screens are smaller. */
const MOST_TIMES = 1_000;
/** Sequences that the library carries out as often as they say, without a limit. */
const COUNTED: readonly { readonly final: string; readonly intermediates?: string }[] = [
  ..."@ILMPSTXZb".split("").map((final) => ({ final })),
  ...[" @", " A", "'}", "'~"].map(([intermediates = "", final = ""]) => ({ intermediates, final })),
];

/** Ignores what would keep the page busy for minutes, or take all its memory: `\x1b[2147483647L`. */
function boundCounts({ parser }: Terminal): void {
  for (const sequence of COUNTED) {
    parser.registerCsiHandler(sequence, (params) => params.flat().some((count) => count > MOST_TIMES));
  }
}
