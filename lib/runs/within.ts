/** Resolves with the work, or when the time is over; the work goes on. Its timer keeps the process alive until then. */
export async function within (ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => { timer = setTimeout(resolve, ms) })
  await Promise.race([timeout, work])
  clearTimeout(timer)
}
