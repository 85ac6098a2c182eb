import { connect, type Socket } from 'node:net'
import { MARK, STAMP_DIGITS } from './payload.ts'

const MARK_BYTE = MARK.charCodeAt(0)
const ZERO = 48
/** The end of a chunked body. Event data holds no CR, so nothing else looks like it. */
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** All sockets read into it: a chunk is counted before the next one is read. */
const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)

/** Which connection asks for what, and who hears of it. */
export interface ConnectionOptions {
  readonly port: number
  readonly request: string
  /** Reads the first bytes and then nothing, as a client that hangs does. */
  readonly stall: boolean
  /** Takes the latency in microseconds of each stamped event. */
  readonly latencies: number[]
  /** Called after each chunk, and once after the end. */
  onChange (connection: Connection): void
}

/** One client: writes its request and counts the events of the answer by their marks, without parsing them. */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  /** Events so far. */
  events = 0
  /** The answer has begun. */
  isOpen = false
  /** The answer has ended, or the socket has closed. */
  isEnded = false
  /** The digits of a stamp that a chunk has cut. */
  #cut = ''
  #tail = ''

  /** It was told to stop reading. */
  readonly isStalled: boolean

  constructor (options: ConnectionOptions) {
    this.#options = options
    this.isStalled = options.stall
    this.#socket = options.stall
      ? connect({ port: options.port, host: '127.0.0.1' }).once('data', (chunk) => this.#stall(chunk))
      : connect({ port: options.port, host: '127.0.0.1', onread: { buffer: READ_BUFFER, callback: (length, buffer) => this.#read(length, buffer as Buffer) } })
    this.#socket.on('error', () => {}) // 'close' follows, and tells the same.
    this.#socket.on('close', () => this.#end())
    this.#socket.write(options.request)
  }

  /** Leaves. */
  close (): void {
    this.#socket.destroy()
  }

  #stall (chunk: Buffer): void {
    this.#socket.pause()
    this.#read(chunk.length, chunk)
  }

  #read (length: number, buffer: Buffer): boolean {
    this.isOpen = true
    this.#count(buffer.subarray(0, length))
    this.#tail = length >= LAST_CHUNK.length
      ? buffer.toString('latin1', length - LAST_CHUNK.length, length)
      : (this.#tail + buffer.toString('latin1', 0, length)).slice(-LAST_CHUNK.length)
    if (this.#tail === LAST_CHUNK) this.#socket.destroy()
    this.#options.onChange(this)
    return true
  }

  #count (chunk: Buffer): void {
    const now = Number(process.hrtime.bigint() / 1000n)
    if (this.#cut !== '') {
      const rest = chunk.toString('latin1', 0, STAMP_DIGITS - this.#cut.length)
      this.#note(now, Number(this.#cut + rest))
      this.#cut = ''
    }
    let at = chunk.indexOf(MARK_BYTE)
    while (at !== -1) {
      this.events++
      const end = at + 1 + STAMP_DIGITS
      // A cut between the mark and its first digit, or twice in one stamp, loses the sample, never the count.
      if (end > chunk.length) this.#cut = chunk.toString('latin1', at + 1)
      else this.#note(now, parseDigits(chunk, at + 1, end))
      at = chunk.indexOf(MARK_BYTE, end)
    }
  }

  #note (now: number, stamp: number): void {
    // Unstamped events are zero; the border of an HTTP chunk inside the digits gives NaN.
    if (stamp > 0) this.#options.latencies.push(now - stamp)
  }

  #end (): void {
    this.isEnded = true
    this.#options.onChange(this)
  }
}

function parseDigits (chunk: Buffer, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = (chunk[at] ?? 0) - ZERO
    if (digit < 0 || digit > 9) return NaN
    value = value * 10 + digit
  }
  return value
}
