import { type Schema, Validator } from '@cfworker/json-schema'
import { type JsonObject, toJson } from './json.ts'

const validators = new WeakMap<object, Validator | undefined>()

/**
 * Checks a value against a JSON Schema (draft 2020-12 unless `$schema` says otherwise). Undefined when it is valid, else what is
 * wrong and where; a schema that cannot be used is no obstacle, as the tool's owner wrote it, not the caller.
 *
 * The schema is interpreted, never compiled into code: the tools of a request bring schemas that nobody here has read.
 */
export function validateJson (schema: JsonObject, value: unknown): string | undefined {
  const validator = validatorOf(schema)
  if (validator === undefined) return undefined
  try {
    const { valid, errors } = validator.validate(value)
    if (valid) return undefined
    // The innermost error says what is wrong, those around it only that something is.
    return errors.slice(-1).map(({ instanceLocation, error }) => `${instanceLocation.slice(1) || '/'}: ${error}`).join()
  } catch {
    return undefined // An unresolved `$ref` or a broken pattern: see above.
  }
}

function validatorOf (schema: JsonObject): Validator | undefined {
  if (!validators.has(schema)) validators.set(schema, create(schema))
  return validators.get(schema)
}

function create (schema: JsonObject): Validator | undefined {
  try {
    // A copy, because the validator writes into what it is given. JSON of the type its users call Schema.
    return new Validator(toJson(schema) as Schema, draftOf(schema.$schema), true)
  } catch {
    return undefined
  }
}

function draftOf (uri: unknown): '4' | '7' | '2019-09' | '2020-12' {
  if (typeof uri !== 'string') return '2020-12'
  if (uri.includes('draft-04')) return '4'
  if (uri.includes('draft-07') || uri.includes('draft-06')) return '7'
  return uri.includes('2019-09') ? '2019-09' : '2020-12'
}
