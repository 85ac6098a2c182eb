import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { type Store } from '../../lib/stores/index.ts'
import { redisStore } from '../../lib/stores/redis/index.ts'
import { isPinned } from './child.ts'

/** Started by a shell that waits for this process to end, however that comes, and ends the server then. */
const SHELL = '"$@" >/dev/null & read -r _; kill $!'

/** Starts a Redis that ends with this process and writes nothing to disk; resolves with its port once it is free to be connected to. */
export async function startRedis (): Promise<number> {
  const port = await freePort()
  const command = [...isPinned ? ['taskset', '-c', '1'] : [], 'redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', '/tmp']
  spawn('sh', ['-c', SHELL, 'redis', ...command], { stdio: ['pipe', 'ignore', 2] }).unref()
  return port
}

/** A store in the Redis at that port of loopback. */
export async function openRedisStore (port: number): Promise<Store> {
  const client = new Redis({ host: '127.0.0.1', port, retryStrategy: () => 20 })
  client.on('error', () => {}) // it tries again until the server listens
  await client.ping()
  return redisStore({ client })
}

async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // it listens on TCP
  server.close()
  await once(server, 'close')
  return port
}
