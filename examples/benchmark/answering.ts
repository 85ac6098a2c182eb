/** The child's half of `Child.ask`: answers each command of the parent, and ends with it. */
export function answerParent<Command> (answer: (command: Command) => Promise<unknown>): void {
  process.on('message', ({ id, command }: { readonly id: number, readonly command: Command }) => {
    answer(command).then(
      (value) => tellParent({ id, value: value ?? null }),
      (error: unknown) => tellParent({ id, error: error instanceof Error ? error.message : String(error) }))
  })
  process.on('disconnect', () => process.exit())
}

/** Sends to the parent, when there is one. */
export function tellParent (message: unknown): void {
  process.send?.(message)
}
