/** What Node's own streams use: `write()` and `toString()` without the checks of their arguments, which every caller here has made. */
export type Bytes = Buffer & {
  utf8Write (text: string, offset: number): number
  utf8Slice (start: number, end: number): string
  latin1Slice (start: number, end: number): string
}

/** Memory that is shared with no other buffer; what is in it is what was there before. */
export function allocate (size: number): Bytes {
  return Buffer.allocUnsafeSlow(size) as Bytes // these members are on every Buffer's prototype and absent from its types
}
