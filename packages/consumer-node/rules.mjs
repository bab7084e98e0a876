// Writes src/rules.json.ts: the rules that all kits share, as a module, so that bundlers need no loader for them.
import { readFileSync, writeFileSync } from "node:fs";

const given = readFileSync(new URL("../../smart_redriver/consumer/rules.json", import.meta.url), "utf8");
const here = new URL("./src/given-rules.ts", import.meta.url);
writeFileSync(here, `// Generated from rules.json by rules.mjs.\nexport const GIVEN = ${given.trim()};\n`);
