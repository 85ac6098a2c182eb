import neostandard from 'neostandard'

export default [
  ...neostandard({
    ts: true,
    ignores: ['dist/**', 'node_modules/**', '**/node_modules/**', '.tap/**', '**/.build/**', 'coverage/**']
  }),
  {
    // The page runs in a browser, as it is.
    files: ['examples/page/*.js'],
    languageOptions: { globals: { document: 'readonly', window: 'readonly', sessionStorage: 'readonly', requestAnimationFrame: 'readonly' } }
  },
  {
    files: ['**/*.ts'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      // A schema and its type share their name (TypeBox); the compiler reports real redeclarations.
      '@typescript-eslint/no-redeclare': 'off',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }]
    }
  },
  {
    files: ['lib/**/*.ts', 'plugins/**/*.ts'],
    rules: {
      '@typescript-eslint/no-non-null-assertion': 'error',
      'no-restricted-syntax': ['error',
        { selector: 'ExportAllDeclaration', message: 'List the exported names: adding one is a decision about the public API.' },
        { selector: 'TSEnumDeclaration', message: 'Use a constant object with `as const`.' }
      ]
    }
  },
  {
    files: ['lib/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': ['error', {
        patterns: [
          { regex: '/plugins/', message: 'lib/ knows no plugin.' },
          { regex: '^(fastify|fastify-plugin|@fastify/(?!error$).*)$', message: 'lib/ has no Fastify at run time.', allowTypeImports: true }
        ]
      }]
    }
  },
  ...['event-stream', 'agents', 'ag-ui', 'agent-protocol'].map((room) => ({
    files: [`plugins/${room}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': ['error', {
        patterns: [
          // The host plugins are shared ground; a protocol never imports another protocol.
          { regex: `^\\.\\./(?!agents/|event-stream/)(?!\\.\\./)(?!${room}/)`, message: 'A protocol plugin never imports another one.' },
          { regex: '/(test|examples)/', message: 'Sources do not import tests or examples.' }
        ]
      }]
    }
  })),
  {
    files: ['plugins/*/client.ts', 'plugins/*/client/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': ['error', {
        patterns: [
          { regex: '^(fastify|fastify-plugin|@fastify/.*)$', message: 'Clients load neither Fastify nor a server.' },
          { regex: '^\\.\\./(?!\\.\\./|(events|wire)\\.ts$)|^\\.\\./\\.\\./(?!\\.\\./lib/)', message: 'A client shares with its server the wire alone.' }
        ]
      }]
    }
  }
]
