import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'

// The bodies of agentprotocol.ai v1, required members and types.
const schemas = JSON.parse(readFileSync(new URL('../fixtures/agentprotocol-v1.json', import.meta.url), 'utf8')) as Record<string, object>
const ajv = new Ajv({ strict: false, allErrors: true })
for (const [name, schema] of Object.entries(schemas)) ajv.addSchema(schema, name)

/** Why a body is not what its schema says; undefined when it is. */
export function classicMisfit (schema: string, body: unknown): string | undefined {
  return ajv.validate(schema, body) === true ? undefined : `${ajv.errorsText()}: ${JSON.stringify(body)}`
}
