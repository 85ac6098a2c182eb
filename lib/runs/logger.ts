/** What the engine needs of a logger; pino's and Fastify's have it. */
export interface RunLogger {
  debug (fields: object, sentence: string): void
  info (fields: object, sentence: string): void
  warn (fields: object, sentence: string): void
  error (fields: object, sentence: string): void
  child (bindings: Record<string, unknown>): RunLogger
}

const ignore = (): void => {}

/** A logger that says nothing. */
export const SILENT: RunLogger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => SILENT }
