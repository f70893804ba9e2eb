/** One request of a client carried to a server: by which next hop, on which connection, what if that fails, and how it ends. */

import type { ClientRequest, IncomingMessage, InformationEvent, ServerResponse } from "node:http";
import { AnswerFault, answerFault } from "../answer-fault.ts";
import { CONNECTION_LOST, errorFrame, type StreamError } from "../connect-envelope.ts";
import { InformationRelay } from "../information.ts";
import type { ClientSide } from "../listening/client.ts";
import { type OutgoingHead, outgoingHead, UnforwardableError } from "../raw-headers.ts";
import { DialError, type DialledAgent } from "./agents.ts";
import { isRepeatable, openCall } from "./call.ts";
import type { Connections } from "./connections.ts";
import { cut, wasReset } from "./cut.ts";
import { ended } from "./ended.ts";
import type { Failure, ForwardPlan, NextHop } from "./forward-plan.ts";
import { keepFor } from "./keep.ts";
import { proxyFailure } from "./proxy-failure.ts";
import { RequestBody } from "./request-body.ts";
import { ResponseRelay } from "./response-relay.ts";
import { sendUpgrade } from "./upgrade.ts";

/** The server broke off, and the error does not say how. */
const NO_ANSWER = "it closed the connection or did not answer in HTTP";

export interface ExchangeHost {
  readonly connections: Connections;
  /** How long a cut Connect stream waits to learn whether its sandbox was killed, milliseconds. */
  readonly lossGraceMs: number;
  onDone(exchange: Exchange): void;
}

/** One request on one connection. */
interface Attempt {
  readonly nextHop: NextHop;
  readonly agent: DialledAgent;
  readonly outgoing: OutgoingHead;
}

/** What the server has been asked, of an ordinary request or of one to upgrade. */
interface Sent {
  readonly body: RequestBody | undefined;
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
  readonly #information: InformationRelay;
  #state: State = { is: "beginning" };
  /** Ends the dialling. Undefined for most requests, which find an open connection. */
  #dialling: AbortController | undefined;
  #hopIndex = 0;
  #retried = false;

  constructor(host: ExchangeHost, plan: ForwardPlan, client: ClientSide) {
    this.#host = host;
    this.plan = plan;
    this.#client = client;
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
    this.#finish();
    if (state.is === "done" || state.is === "switched") return Promise.resolve();
    if (to === undefined) {
      this.plan.refuse(this.#client, { is: "removed" });
      return Promise.resolve();
    }
    const { response, relay } = to;
    if (mayAppend) response.end(errorFrame(error, relay.form));
    else relay.breakOff(this.#client.request);
    return ended(response, limitMs);
  }

  // --- towards the server

  #take(fresh = false): void {
    const nextHop = this.plan.nextHops[this.#hopIndex];
    const outgoing = nextHop === undefined ? undefined : this.#compose(nextHop);
    if (nextHop === undefined || outgoing === undefined) return;
    const { keeping, single } = this.#host.connections.agents(this.plan.executionId, nextHop);
    if (fresh) keeping.dropIdle(true);
    const keeps = this.#client.upgrade === undefined && (nextHop.ours || isRepeatable(this.#client.request, outgoing));
    // A server that serves one connection at a time would not accept a new one while it holds an idle one.
    if (!keeps) keeping.dropIdle(false);
    const attempt = { nextHop, agent: keeps ? keeping : single, outgoing };
    try {
      if (this.#client.upgrade === undefined) this.#send(attempt);
      else this.#switch(attempt);
    } catch {
      this.#fail({ is: "unforwardable", message: "the request has characters that cannot be forwarded" });
    }
  }

  #compose(nextHop: NextHop): OutgoingHead | undefined {
    try {
      const { edits, path } = this.plan;
      const { method = "GET", rawHeaders } = this.#client.request;
      const hop = { added: nextHop.added, upgrade: this.#client.upgrade?.protocol };
      return outgoingHead({ method, path, rawHeaders }, edits, hop);
    } catch (error) {
      if (!(error instanceof UnforwardableError)) throw error;
      this.#fail({ is: "unforwardable", message: error.message });
      return undefined;
    }
  }

  /** @throws for a head that Node's client refuses to write */
  #send(attempt: Attempt): void {
    const { agent, outgoing } = attempt;
    const { request } = this.#client;
    const { method } = request;
    const call = openCall({
      agent,
      method,
      path: this.plan.path,
      headers: outgoing.headers,
      lenient: !attempt.nextHop.ours,
      dialSignal: () => (this.#dialling ??= new AbortController()).signal,
    });
    const { framing, expectsContinue } = outgoing;
    const body =
      framing === "none" || framing === "empty"
        ? undefined
        : new RequestBody(request, call, { framing, drops: this.plan.edits.drops });
    const sent: Sent = {
      body,
      destroy(reset) {
        if (reset && call.socket !== null) cut(call.socket);
        call.destroy();
      },
    };
    this.#state = { is: "sent", sent };
    call.on("information", (info) => this.#onInformation(call, info));
    call.on("response", (answer) => this.#onAnswer(call, answer, attempt));
    call.on("error", (error) => this.#onError(call, error, attempt));
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

  #switch(attempt: Attempt): void {
    const { request, upgrade } = this.#client;
    if (upgrade === undefined) return;
    const upgrading = sendUpgrade({
      request,
      upgrade,
      path: this.plan.path,
      headers: attempt.outgoing.headers,
      agent: attempt.agent,
      lenient: !attempt.nextHop.ours,
      keepsBack: this.plan.keepsBack,
      onAnswer: (call, answer) => this.#onAnswer(call, answer, attempt),
      onInformation: (call, info) => this.#onInformation(call, info),
      onSwitched: () => {
        if (this.#state.is === "sent") this.#state = { is: "switched", sent };
      },
      onDone: () => this.#finish(),
      onError: (call, error) => this.#onError(call, error, attempt),
    });
    const sent: Sent = { body: undefined, destroy: (reset) => upgrading.destroy(reset) };
    this.#state = { is: "sent", sent };
  }

  // --- from the server

  #onInformation(call: ClientRequest, info: InformationEvent): void {
    if (this.#state.is !== "sent" || this.#information.relay(info)) return;
    call.destroy(new AnswerFault("it sent informational responses without end"));
  }

  #onAnswer(call: ClientRequest, answer: IncomingMessage, { nextHop, agent }: Attempt): void {
    answer.on("error", ignore);
    if (this.#state.is !== "sent") {
      call.destroy();
      return;
    }
    const { sent } = this.#state;
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
      const relay = new ResponseRelay(response, this.plan);
      try {
        // A client whose body is no longer wanted cannot use its connection for another request.
        relay.head(this.#client.request, answer, sent.body?.started === false);
      } catch (error) {
        this.#fail({
          is: "bad_response",
          reason: answerFault(error) ?? "its answer has a head that cannot be forwarded",
        });
        return;
      }
      this.#state = { is: "answering", sent, to: { response, relay } };
      // `onGone` watches the response of a plain request; a request to upgrade has one only now.
      if (this.#client.upgrade !== undefined) response.on("close", () => this.#finish());
      answer.on("end", () => this.#onEnd(answer, (idleMs) => agent.mayKeep(socket, idleMs), nextHop));
      answer.on("close", () => this.#onLost());
      relay.body(answer);
      if (answer.destroyed && !answer.complete) this.#onLost();
    });
  }

  #onEnd(answer: IncomingMessage, keep: (idleMs: number) => void, nextHop: NextHop): void {
    if (this.#state.is !== "answering" || !answer.complete) return;
    const { sent, to } = this.#state;
    const whole = sent.body === undefined || sent.body.surelyRead;
    if (whole) keep(keepFor(answer, nextHop.idleMs));
    this.#leave(sent);
    this.#host.onDone(this);
    // Node would wait for the rest of a body that no one will send. A declined upgrade keeps no connection.
    if (!whole || this.#client.upgrade !== undefined) sent.destroy(false);
    to.relay.end(answer.rawTrailers);
  }

  // --- endings

  #onError(call: ClientRequest, error: Error, { nextHop, outgoing }: Attempt): void {
    // Once the head of a response has arrived, only the end of that response decides how the exchange ends.
    if (this.#state.is !== "sent" && this.#state.is !== "answered") return;
    this.#state.sent.body?.stop();
    if (error instanceof DialError) {
      this.#onUndialable(nextHop);
    } else if (
      call.reusedSocket &&
      !this.#retried &&
      isRepeatable(this.#client.request, outgoing) &&
      this.#information.count === 0
    ) {
      // The server closed a kept connection just before the request was written.
      this.#retried = true;
      this.#take(true);
    } else {
      this.#fail({ is: "bad_response", reason: answerFault(error) ?? NO_ANSWER });
    }
  }

  #onUndialable(nextHop: NextHop): void {
    if (this.#hopIndex + 1 < this.plan.nextHops.length) {
      this.#hopIndex++;
      this.#take();
      return;
    }
    // A proxy that cannot be dialled says nothing of the server, unless the server itself was tried before.
    this.#fail({ is: nextHop.proxied && this.#hopIndex === 0 ? "unreachable" : "closed" });
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
    const sent = state.is === "beginning" ? undefined : state.sent;
    this.#leave(sent);
    sent?.destroy(wasReset(this.#client.request.socket));
    this.#host.onDone(this);
  }

  /** Leaves what the server was asked as it is. */
  #leave(sent: Sent | undefined): void {
    this.#state = { is: "done" };
    sent?.body?.stop();
    this.#dialling?.abort(new Error("the exchange has ended"));
  }
}

/** Errors need no handling, because "close" follows and ends the exchange. */
function ignore(): void {}
