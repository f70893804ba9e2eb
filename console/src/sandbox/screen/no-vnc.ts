/**
 * The live screen of a sandbox: noVNC's client, on a program of the sandbox in place of a WebSocket. What comes is made by a program of
 * the sandbox, so the client takes only the parts of the protocol that it has asked for, and ends what the page could not bear.
 */

import RFB from "@novnc/novnc";
import { anyOf } from "../../base/stream.ts";
import { call, follow } from "../envd.ts";
import { ProgramChannel, pump } from "./channel.ts";
import { NoScreen, Refused, ServerEnded } from "./endings.ts";
import type { Message } from "./outcome.ts";
import { MOST_PIXELS } from "./picture.ts";
import { DISPLAY, NO_SCREEN } from "./scripts.ts";
import { SILENCE_S, viewer } from "./viewer-script.ts";

/** Browsers draw no wider canvas than some 32 000 pixels. */
const MOST_SIDE = 16_384;
/** A message that is not there as a whole; the largest part of a picture is one of 4 MiB. */
const MOST_UNREAD_BYTES = 8 * 1024 * 1024;
/** Times that the whole screen may be drawn in one piece of the stream; a server draws it once each time that it is asked. */
const MOST_TIMES = 8;
const SOME_PIXELS = 1_000_000;
/** Of work, before the page gets its turn. */
const TURN_MS = 8;
const HIDDEN_FRAME_MS = 100;
const ANSWER_MS = 20_000;
const KILL_MS = 10_000;
const MOST_REASON_LENGTH = 300;

/** RFC 6143, and Tight. No picture formats of the browser, no shapes of the pointer, no clipboard and no other size on our wish. */
const [RAW, COPY, HEXTILE, TIGHT, SIZE, LAST] = [0, 1, 5, 7, -223, -224];
const COMPRESSED_A_LITTLE = -254;
const DRAWN = [COPY, TIGHT, HEXTILE, RAW];
const NO_PASSWORD = 1;

interface Showing {
  readonly takesOver: boolean;
  /** Whether the keyboard goes to the screen as soon as that is there. */
  readonly focuses: boolean;
  readonly left: AbortSignal;
  /** The picture is there, or has another size. */
  readonly size: (width: number, height: number) => void;
  /** The keyboard leaves the screen. */
  readonly leave: () => void;
}

class Client extends RFB {
  /** Drawn since the page had its turn. */
  #pixels = 0;
  #isCounted = false;
  #since = performance.now();
  /** The screen has another size. */
  resized: (width: number, height: number) => void = () => undefined;

  constructor(place: Element, channel: ProgramChannel) {
    super(place, channel);
    // Only JPEG comes by it, which the client does not ask for, and the page's policy forbids.
    this._display.imageRect = () => {
      throw new Error("a picture that was not asked for");
    };
    // The library shows, after each update, all between the edges of what it has drawn: for two pixels that can be the whole screen.
    const flip = this._display.flip.bind(this._display);
    let isDue = false;
    this._display.flip = () => {
      if (isDue) return;
      isDue = true;
      requestAnimationFrame(() => {
        isDue = false;
        flip();
      });
    };
  }

  get canvas(): HTMLCanvasElement {
    return this._canvas;
  }

  releaseKeys(): void {
    this._keyboard._allKeysUp();
  }

  signOfLife(): void {
    RFB.messages.fbUpdateRequest(this._sock, true, 0, 0, 1, 1);
  }

  async paced(): Promise<void> {
    if (this._sock.rQlen() > MOST_UNREAD_BYTES) this._fail("a message that is too large");
    if (performance.now() - this.#since < TURN_MS && this.#pixels <= this._fbWidth * this._fbHeight) return;
    await nextFrame();
    this.#since = performance.now();
    this.#pixels = 0;
  }

  /** Above the library's own way, which writes it to the browser's log and goes on reading. */
  protected override _fail(details: string): boolean {
    throw new Refused(`The screen's server in the sandbox sends what is not shown: ${plain(details)}.`);
  }

  protected override _isSupportedSecurityType(type: number): boolean {
    return type === NO_PASSWORD;
  }

  /** A server of RFB 3.3 names one type, and noVNC begins that log-in without asking `_isSupportedSecurityType`. */
  protected override _negotiateAuthentication(): boolean {
    if (!this._isSupportedSecurityType(this._rfbAuthScheme)) throw new Refused("The screen asks for a password.");
    return super._negotiateAuthentication();
  }

  protected override _sendEncodings(): void {
    RFB.messages.clientEncodings(this._sock, [...DRAWN, SIZE, LAST, COMPRESSED_A_LITTLE]);
  }

  protected override _resize(width: number, height: number): void {
    const isDrawn = width > 0 && height > 0 && Math.max(width, height) <= MOST_SIDE && width * height <= MOST_PIXELS;
    if (!isDrawn) this._fail(`a screen of ${width} × ${height} pixels`);
    this.#spend(this._fbWidth * this._fbHeight + width * height);
    super._resize(width, height);
    this.resized(width, height);
  }

  protected override _handleRect(): boolean {
    const { x, y, width, height, encoding } = this._FBU;
    if (encoding === SIZE || encoding === LAST) return super._handleRect();
    if (!DRAWN.includes(encoding)) this._fail(`an encoding that was not asked for (${encoding})`);
    if (x + width > this._fbWidth || y + height > this._fbHeight) this._fail("a part beyond the edge of the screen");
    // A part that comes in several pieces is asked for again with each.
    if (!this.#isCounted) this.#spend(width * height);
    this.#isCounted = !super._handleRect();
    return !this.#isCounted;
  }

  /** The clipboard of a sandbox is passed over. */
  protected override _handleServerCutText(): boolean {
    const headBytes = 7;
    if (this._sock.rQwait("clipboard", headBytes, 1)) return false;
    this._sock.rQskipBytes(headBytes - 4);
    // Negative: of the extended form.
    const length = Math.abs(this._sock.rQshift32() >> 0);
    if (this._sock.rQwait("clipboard", length, headBytes + 1)) return false;
    this._sock.rQskipBytes(length);
    return true;
  }

  protected override _handleServerFenceMsg(): boolean {
    return this._fail("a message that was not asked for");
  }

  #spend(pixels: number): void {
    this.#pixels += pixels;
    // The change from a large screen to a small one, or back, is more than so many times the small one.
    const size = Math.max(this._fbWidth * this._fbHeight, pixels);
    if (this.#pixels > MOST_TIMES * size + SOME_PIXELS) this._fail("more than a page can draw");
  }
}

/**
 * Shows the screen in `place` until `left` is aborted, or it ends otherwise.
 * @throws {NoScreen} @throws {Refused} @throws {ServerEnded} @throws {Failed} @throws {Error} the stream was lost
 */
export async function showScreen(id: string, place: HTMLElement, showing: Showing): Promise<void> {
  const ended = new AbortController();
  const signal = anyOf([showing.left, ended.signal]);
  const process = { tag: `console-screen-${crypto.getRandomValues(new Uint32Array(2)).join("-")}` };
  const channel = new ProgramChannel({
    send: (stdin, limit) =>
      call(id, "process.Process/SendInput", { process, input: { stdin } }, anyOf([limit, signal])),
    failed: (why) => ended.abort(why),
  });
  const client = clientIn(place, channel, { ...showing, left: signal });
  const silent = () => ended.abort(new ServerEnded("The screen's server in the sandbox does not answer."));
  const answer = setTimeout(silent, ANSWER_MS);
  let alive: ReturnType<typeof setInterval> | undefined;
  client.addEventListener("connect", () => {
    clearTimeout(answer);
    alive = setInterval(() => client.signOfLife(), (SILENCE_S * 1_000) / 4);
  });
  const started = {
    process: { cmd: "/bin/bash", args: ["-c", viewer(showing.takesOver)], envs: { DISPLAY, LANG: "C.UTF-8" } },
    tag: process.tag,
    stdin: true,
  };
  let isOver = false;
  try {
    const messages = follow<Message>(id, "process.Process/Start", started, signal);
    const { exitCode, errors } = await pump(messages, channel, () => client.paced());
    isOver = true;
    if (exitCode === NO_SCREEN) throw new NoScreen();
    // What it has said last is why.
    const why = plain(errors.trim().slice(-MOST_REASON_LENGTH)) || `status ${exitCode}`;
    throw new ServerEnded(`The screen's server in the sandbox has ended: ${why}`);
  } catch (error) {
    if (showing.left.aborted) return;
    throw ended.signal.aborted ? (ended.signal.reason as Error) : error;
  } finally {
    clearTimeout(answer);
    clearInterval(alive);
    ended.abort();
    const hasBegun = channel.readyState !== "connecting";
    client.disconnect();
    if (hasBegun && !isOver) void kill(id, process);
  }
}

/** Where that does not arrive, the program ends because it hears nothing of the page. */
async function kill(id: string, process: object): Promise<void> {
  const body = { process, signal: "SIGNAL_SIGTERM" };
  await call(id, "process.Process/SendSignal", body, AbortSignal.timeout(KILL_MS)).catch(() => undefined);
}

function clientIn(place: HTMLElement, channel: ProgramChannel, showing: Showing): Client {
  const { takesOver, focuses, size, leave, left } = showing;
  const client = new Client(place, channel);
  client.viewOnly = !takesOver;
  client.scaleViewport = true;
  client.resized = size;
  const { canvas } = client;
  canvas.setAttribute("role", takesOver ? "application" : "img");
  canvas.setAttribute("aria-label", "The sandbox's screen");
  canvas.addEventListener("blur", () => client.releaseKeys());
  client.addEventListener("connect", () => focuses && client.focus({ preventScroll: true }));
  // Before the client's own, which takes every key.
  const leaves = (event: KeyboardEvent) => {
    if (!(event.ctrlKey && event.shiftKey && event.code === "Period")) return;
    event.preventDefault();
    event.stopPropagation();
    leave();
  };
  place.addEventListener("keydown", leaves, { capture: true, signal: left });
  return client;
}

/** Pages that are not seen get no frames. */
function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, HIDDEN_FRAME_MS);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Texts of a sandbox can be long, and have characters that change those around them. */
function plain(text: string): string {
  return text.replace(/[\p{C}\s]+/gu, " ").slice(0, MOST_REASON_LENGTH);
}
