import js from "@eslint/js";
import globals from "globals";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  globalIgnores([
    // Copies of other people's code that measurements bring along; git ignores them too.
    ".bench",
    ".gpu",
    "dist",
    "docs",
    "www/dist",
    "js/generated",
    "www/lab/generated",
    "target",
    "pkg",
    "tests/data",
    "tests/cases/run.mjs",
  ]),
  {
    files: ["**/*.ts"],
    // Stand-ins for projects of users, each with its own settings.
    ignores: ["tests/packaging/**"],
    extends: [js.configs.recommended, tseslint.configs.strictTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ["tsconfig.json", "tsconfig.node.json"],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      // A number in a message is what it looks like.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["**/*.mjs", "**/*.js"],
    extends: [js.configs.recommended],
    // Tests and benchmarks hold functions that run in a page.
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
);
