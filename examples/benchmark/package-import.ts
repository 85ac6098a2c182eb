/**
 * Imports a package of `examples/benchmark` that the compiler must not look for: it checks this folder also where the
 * peers are not installed. The caller says what it uses of the package.
 */
export async function importPackage<T> (name: string): Promise<T> {
  return await import(name) as T
}
