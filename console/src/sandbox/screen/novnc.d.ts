/** What the page uses of `@novnc/novnc`, which has no types of its own; names with `_` are its inner parts, by the version in package.json. */

declare module "@novnc/novnc" {
  interface Socket {
    rQlen(): number;
    rQwait(what: string, bytes: number, goBack?: number): boolean;
    rQskipBytes(bytes: number): void;
    rQshift32(): number;
  }

  export default class RFB {
    static readonly messages: {
      clientEncodings(socket: Socket, encodings: readonly number[]): void;
      fbUpdateRequest(
        socket: Socket,
        ...area: readonly [isIncremental: boolean, x: number, y: number, width: number, height: number]
      ): void;
    };
    viewOnly: boolean;
    scaleViewport: boolean;
    /** @param channel in the form of a WebSocket */
    constructor(place: Element, channel: object);
    addEventListener(name: "connect", listener: () => void): void;
    focus(options?: FocusOptions): void;
    disconnect(): void;

    protected readonly _canvas: HTMLCanvasElement;
    protected readonly _sock: Socket;
    protected readonly _keyboard: { _allKeysUp(): void };
    protected readonly _display: { imageRect: () => void; flip: () => void };
    protected readonly _rfbAuthScheme: number;
    protected readonly _fbWidth: number;
    protected readonly _fbHeight: number;
    protected readonly _FBU: {
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly encoding: number;
    };
    protected _isSupportedSecurityType(type: number): boolean;
    protected _negotiateAuthentication(): boolean;
    protected _sendEncodings(): void;
    protected _resize(width: number, height: number): void;
    protected _handleRect(): boolean;
    protected _handleServerCutText(): boolean;
    protected _handleServerFenceMsg(): boolean;
    protected _fail(details: string): boolean;
  }
}
