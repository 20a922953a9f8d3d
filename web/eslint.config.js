import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist", "eslint.config.js", "src/api/schema.d.ts"] },
  ...ts.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    plugins: { "react-hooks": hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true, allowBoolean: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      // Content of rollouts is hostile: text goes through React, never through markup.
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "render text, not markup" },
        { selector: "MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML)$/]", message: "render text, not markup" },
      ],
      "no-eval": "error",
      eqeqeq: "error",
    },
  },
  {
    // In a test, what is not there should fail it.
    files: ["tests/**", "**/*.test.*"],
    rules: { "@typescript-eslint/no-non-null-assertion": "off" },
  },
);
