/** One request of a client carried to a server: by which next hop, on which connection, what if that fails, and how it ends. */

import type { ClientRequest, IncomingMessage, InformationEvent, ServerResponse } from "node:http";
import { AnswerFault, answerFault } from "../answer-fault.ts";
import { CONNECTION_LOST, errorFrame, type StreamError } from "../connect-envelope.ts";
import { InformationRelay } from "../information.ts";
import type { ClientSide, UpgradeRequest } from "../listening/client.ts";
import { UnforwardableError } from "../raw-headers.ts";
import { DialError } from "../sockets/agents.ts";
import { cut, wasReset } from "../sockets/cut.ts";
import { ended } from "../sockets/ended.ts";
import { type Attempt, Attempts } from "./attempts.ts";
import { openCall } from "./call.ts";
import type { Connections } from "./connections.ts";
import type { Failure, ForwardPlan } from "./forward-plan.ts";
import { keepFor } from "./keep.ts";
import { proxyFailure } from "./proxy-failure.ts";
import { RequestBody } from "./request-body.ts";
import { ResponseRelay } from "./response-relay.ts";
import type { SwitchOptions } from "./switch-options.ts";
import { isWebSocket, sendUpgrade } from "./switching.ts";

/** The server broke off, and the error does not say how. */
const NO_ANSWER = "it closed the connection or did not answer in HTTP";

export interface ExchangeHost {
  readonly connections: Connections;
  /** How long a cut Connect stream waits to learn whether its sandbox was killed, milliseconds. */
  readonly lossGraceMs: number;
  onDone(exchange: Exchange): void;
}

/** What the server has been asked, of an ordinary request or of one to upgrade. */
interface Sent {
  readonly body?: RequestBody | undefined;
  /** The server may have got the request: a connection to it has been opened. */
  readonly reached: boolean;
  /** Ends it in any phase. @param reset the client has reset its connection */
  destroy(reset: boolean): void;
}

type State =
  | { readonly is: "beginning" }
  /** The server may be dialled still; no head of an answer has come. */
  | { readonly is: "sent"; readonly sent: Sent }
  /** The answer's head has come, and the client's response is being made. */
  | { readonly is: "answered"; readonly sent: Sent }
  | { readonly is: "answering"; readonly sent: Sent; readonly to: Answering }
  /** The answer has broken off: the sandbox may be ending, which `end` then tells. */
  | { readonly is: "lost"; readonly sent: Sent; readonly to: Answering; readonly timer: NodeJS.Timeout }
  /** Both sockets are one pipe, which ends when both of them have. */
  | { readonly is: "switched"; readonly sent: Sent }
  | { readonly is: "done" };

/** The client's side of an answer. */
interface Answering {
  readonly response: ServerResponse;
  readonly relay: ResponseRelay;
}

export class Exchange {
  readonly plan: ForwardPlan;
  readonly #client: ClientSide;
  readonly #host: ExchangeHost;
  readonly #attempts: Attempts;
  readonly #information: InformationRelay;
  /** Why TLS did not begin with the server that a next hop reached. */
  #fault: string | undefined;
  #state: State = { is: "beginning" };

  constructor(host: ExchangeHost, plan: ForwardPlan, client: ClientSide) {
    this.#host = host;
    this.plan = plan;
    this.#client = client;
    this.#attempts = new Attempts(host.connections, plan, client);
    this.#information = new InformationRelay({
      request: client.request,
      connection: () => client.informable,
      keepsBack: plan.keepsBack,
    });
  }

  start(): void {
    this.#client.onGone(() => {
      // A switched connection ends when both of its sockets have.
      if (this.#state.is !== "switched") this.#finish();
    });
    this.#take();
  }

  /** Ends the exchange at once; resolves when the client has the last bytes, or after `limitMs`. */
  end(error: StreamError, limitMs: number): Promise<void> {
    const state = this.#state;
    const to = state.is === "answering" || state.is === "lost" ? state.to : undefined;
    const mayAppend = to?.relay.mayAppendError === true;
    const underWay = (state.is === "sent" || state.is === "answered") && state.sent.reached;
    this.#finish();
    if (state.is === "done" || state.is === "switched") return Promise.resolve();
    if (to === undefined) {
      this.plan.refuse(this.#client, { is: "removed", underWay });
      return Promise.resolve();
    }
    const { response, relay } = to;
    if (mayAppend) response.end(errorFrame(error, relay.form));
    else relay.breakOff(this.#client.request);
    return ended(response, limitMs);
  }

  // --- towards the server

  #take(): void {
    const { upgrade } = this.#client;
    try {
      const attempt = this.#attempts.current();
      if (attempt === undefined) return;
      if (upgrade === undefined) this.#send(attempt);
      else this.#switch(attempt, upgrade);
    } catch (error) {
      const known = error instanceof UnforwardableError;
      const message = known ? error.message : "the request has characters that cannot be forwarded";
      this.#fail({ is: "unforwardable", message });
    }
  }

  /** @throws for a head that Node's client refuses to write */
  #send(attempt: Attempt): void {
    const { agent, outgoing, nextHop } = attempt;
    const { request } = this.#client;
    const { method } = request;
    const { dialSignal } = this.#attempts;
    const { path, edits, patience } = this.plan;
    const call = openCall({ agent, method, path, headers: outgoing.headers, lenient: !nextHop.ours, dialSignal });
    const { framing, expectsContinue } = outgoing;
    const body =
      framing === "none" || framing === "empty"
        ? undefined
        : new RequestBody(request, call, { framing, drops: edits.drops, stallMs: patience.stallMs });
    const sent: Sent = {
      body,
      get reached() {
        return call.socket !== null;
      },
      destroy(reset) {
        if (reset && call.socket !== null) cut(call.socket);
        call.destroy();
      },
    };
    this.#state = { is: "sent", sent };
    call.on("information", (info) => this.#onInformation(info, (error) => call.destroy(error)));
    call.on("response", (answer) => this.#onAnswer(answer, sent, attempt));
    call.on("error", (error) => {
      body?.stop();
      this.#onError(error, attempt, call);
    });
    // A close without an error: the server switched to a protocol that the client did not ask for.
    call.on("close", () => {
      if (this.#state.is === "sent" && this.#state.sent === sent)
        this.#fail({ is: "bad_response", reason: "it switched to a protocol that was not asked for" });
    });
    if (body === undefined) {
      call.end();
      return;
    }
    // Not before there is a connection: what was read for a next hop that cannot be dialled is lost for the one after it.
    call.once("socket", () => {
      if (!expectsContinue || request.httpVersionMinor === 0) body.start();
      else body.startOnContinue(() => this.#client.answer((response) => response.writeContinue()));
    });
  }

  #switch(attempt: Attempt, upgrade: UpgradeRequest): void {
    const { agent, outgoing, nextHop } = attempt;
    const { request } = this.#client;
    const { path, keepsBack, patience, maySwitch, sendWebSocket } = this.plan;
    // A node proxy's answer may be a failure, which is not the server's: only this exchange reads it.
    const byLibrary = isWebSocket(request, upgrade.protocol) && !nextHop.proxied ? sendWebSocket : undefined;
    const options: SwitchOptions = {
      request,
      upgrade,
      path,
      keepsBack,
      stallMs: patience.stallMs,
      headers: outgoing.headers,
      agent,
      dialSignal: this.#attempts.dialSignal,
      lenient: !nextHop.ours,
      onAnswer: (answer) => this.#onAnswer(answer, switching, attempt),
      onInformation: (info, stop) => this.#onInformation(info, stop),
      onSwitched: () => {
        if (this.#state.is === "sent") this.#state = { is: "switched", sent: switching };
      },
      onDone: () => this.#finish(),
      onError: (error) => this.#onError(error, attempt),
    };
    const switching = byLibrary?.(options) ?? sendUpgrade(options, maySwitch);
    this.#state = { is: "sent", sent: switching };
  }

  // --- from the server

  #onInformation(info: InformationEvent, stop: (error: Error) => void): void {
    if (this.#state.is !== "sent" || this.#information.relay(info)) return;
    stop(new AnswerFault("it sent informational answers without end"));
  }

  #onAnswer(answer: IncomingMessage, sent: Sent, { nextHop, agent }: Attempt): void {
    answer.on("error", ignore);
    if (this.#state.is !== "sent") {
      sent.destroy(false);
      return;
    }
    this.#state = { is: "answered", sent };
    // Kept here, because Node removes the socket from an answer that has ended.
    const { socket } = answer;
    const failure = nextHop.proxied ? proxyFailure(answer) : undefined;
    if (failure !== undefined) {
      this.#fail(failure);
      return;
    }
    sent.body?.stopUnlessStarted();
    this.#client.answer((response) => {
      if (this.#state.is !== "answered") return;
      const { request, upgrade } = this.#client;
      const relay = new ResponseRelay(response, this.plan);
      try {
        // A client whose body is no longer wanted cannot use its connection for another request.
        relay.head(request, answer, sent.body?.started === false);
      } catch (error) {
        const reason = answerFault(error) ?? "its answer has a head that cannot be forwarded";
        this.#fail({ is: "bad_response", reason });
        return;
      }
      this.#state = { is: "answering", sent, to: { response, relay } };
      // `onGone` watches the response of a plain request; a request to upgrade has one only now.
      if (upgrade !== undefined) response.on("close", () => this.#finish());
      answer.on("end", () => {
        if (answer.complete)
          this.#onEnd(answer.rawTrailers, () => agent.mayKeep(socket, keepFor(answer, nextHop.idleMs)));
      });
      answer.on("close", () => this.#onLost());
      relay.body(request, answer, () => this.#onEnd([]));
      if (answer.destroyed && !answer.complete) this.#onLost();
    });
  }

  /** The client has been given the whole answer. @param keep absent: the connection cannot be used again */
  #onEnd(trailers: readonly string[], keep?: () => void): void {
    if (this.#state.is !== "answering") return;
    const { sent, to } = this.#state;
    const { restMs } = this.plan.patience;
    const whole = keep !== undefined && (sent.body === undefined || sent.body.surelyRead);
    if (whole) keep();
    this.#state = { is: "done" };
    this.#attempts.endDialling();
    this.#host.onDone(this);
    if (keep !== undefined && !whole && restMs > 0 && sent.body?.unfinished === true) sent.body.finishWithin(restMs);
    else {
      sent.body?.stop();
      // Node would wait for the rest of a body that no one will send. A declined upgrade keeps no connection.
      if (!whole || this.#client.upgrade !== undefined) sent.destroy(false);
    }
    to.relay.end(trailers);
  }

  // --- endings

  #onError(error: Error, attempt: Attempt, call?: ClientRequest): void {
    // Once the head of a response has arrived, only the end of that response decides how the exchange ends.
    if (this.#state.is !== "sent" && this.#state.is !== "answered") return;
    if (error instanceof DialError) {
      // Also after a handshake that failed: perhaps the sandbox is just being paused, which the node's proxy knows.
      if (error.cause instanceof AnswerFault) this.#fault = error.cause.message;
      if (this.#attempts.another()) this.#take();
      else if (this.#fault !== undefined) this.#fail({ is: "bad_response", reason: this.#fault });
      else if (this.#attempts.knowsServer(attempt.nextHop)) this.#fail({ is: "closed", cause: error.cause });
      else this.#fail({ is: "unreachable", unsent: true });
    } else if (call !== undefined && this.#information.count === 0 && this.#attempts.again(call, attempt)) this.#take();
    else this.#fail({ is: "bad_response", reason: answerFault(error) ?? NO_ANSWER });
  }

  /** The connection ended before the response did. */
  #onLost(): void {
    if (this.#state.is !== "answering") return;
    const { sent, to } = this.#state;
    if (to.relay.mayAppendError) {
      // The sandbox may be ending: `end` is then called with the reason, otherwise the connection was lost.
      const timer = setTimeout(() => void this.end(CONNECTION_LOST, 0), this.#host.lossGraceMs);
      this.#state = { is: "lost", sent, to, timer };
      return;
    }
    this.#finish();
    to.relay.breakOff(this.#client.request);
  }

  #fail(failure: Failure): void {
    if (this.#state.is === "done") return;
    this.#finish();
    if (!this.#client.gone) this.plan.refuse(this.#client, failure);
  }

  /**
   * Gives back everything but the response itself. A server's connection ends as if its client were connected directly: with
   * RST when the client has reset its own, else with FIN, also after a broken answer. Many servers have no handler for a
   * reset of an upgraded connection, and die of one.
   */
  #finish(): void {
    const state = this.#state;
    if (state.is === "done") return;
    if (state.is === "lost") clearTimeout(state.timer);
    this.#state = { is: "done" };
    this.#attempts.endDialling();
    if (state.is !== "beginning") {
      state.sent.body?.stop();
      state.sent.destroy(this.plan.passesResets && wasReset(this.#client.request.socket));
    }
    this.#host.onDone(this);
  }
}

/** Errors need no handling, because "close" follows and ends the exchange. */
function ignore(): void {}
