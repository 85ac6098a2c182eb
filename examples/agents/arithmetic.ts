// The calculator's one tool: + - * / % ^ and parentheses, by recursive descent. Nothing is ever handed to eval().

/** Finds the sums in a sentence: `what is 6*7 and 2^10?` gives `6*7` and `2^10`. */
export function findExpressions (text: string): string[] {
  const found = text.match(/[-(]*\d[\d.]*(?:\s*[-+*/%^()]+\s*[-(]*\d[\d.]*\)*)+/g) ?? []
  return found.map((expression) => balance(expression.replace(/\s+/g, '')))
}

/** Computes one expression. @throws Error that says where it stopped making sense */
export function evaluate (expression: string): number {
  const tokens = expression.match(/\d+(?:\.\d+)?|[-+*/%^()]|\S/g) ?? []
  let at = 0
  const value = sum()
  if (at < tokens.length) throw new Error(`"${tokens[at]}" was not expected at position ${at + 1} of "${expression}"`)
  if (!Number.isFinite(value)) throw new Error(`"${expression}" has no finite value`)
  return value

  function sum (): number {
    let left = product()
    for (;;) {
      if (take('+')) left += product()
      else if (take('-')) left -= product()
      else return left
    }
  }

  function product (): number {
    let left = signed()
    for (;;) {
      if (take('*')) left *= signed()
      else if (take('/')) left /= signed()
      else if (take('%')) left %= signed()
      else return left
    }
  }

  function signed (): number {
    return take('-') ? -signed() : power()
  }

  function power (): number {
    const base = atom()
    return take('^') ? base ** signed() : base
  }

  function atom (): number {
    if (take('(')) {
      const inner = sum()
      if (!take(')')) throw new Error(`a closing parenthesis is missing in "${expression}"`)
      return inner
    }
    const token = tokens[at++]
    if (token === undefined) throw new Error(`"${expression}" ends too early`)
    if (!/^\d/.test(token)) throw new Error(`"${token}" was not expected at position ${at} of "${expression}"`)
    return Number(token)
  }

  function take (token: string): boolean {
    if (tokens[at] !== token) return false
    at += 1
    return true
  }
}

/** Drops parentheses that the sentence, not the sum, has closed or opened. */
function balance (expression: string): string {
  let open = 0
  let kept = ''
  for (const char of expression) {
    if (char === '(') open += 1
    if (char === ')') {
      if (open === 0) continue
      open -= 1
    }
    kept += char
  }
  for (; open > 0 && kept.startsWith('('); open -= 1) kept = kept.slice(1)
  return kept
}
