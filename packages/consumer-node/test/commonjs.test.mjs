// The package as CommonJS gets it. Lambda's Node 20 and 22 can't `require` an ES module.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { PERMANENT, PermanentError, RetryableError } from "@smart-redriver/consumer";
import { isPermanent, retryAfterOf } from "../dist/errors.js";

const require = createRequire(import.meta.url);
const cwd = fileURLToPath(new URL("..", import.meta.url));
const required = require("@smart-redriver/consumer");

test("it can be required where Node does not require ES modules", () => {
  const ask = `const { handlerOf } = require("@smart-redriver/consumer");
    const { reportingProcessor } = require("@smart-redriver/consumer/powertools");
    const { BatchProcessor } = require("@aws-lambda-powertools/batch");
    console.log(typeof handlerOf, reportingProcessor() instanceof BatchProcessor);`;

  const told = execFileSync(process.execPath, ["--no-experimental-require-module", "-e", ask], { cwd, encoding: "utf8" });

  assert.equal(told, "function true\n");
});

test("a strict CommonJS project in TypeScript can use it, also with Powertools", () => {
  const compiler = require.resolve("typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--types", "node", "--module", "node16"];

  const done = spawnSync(process.execPath, [compiler, ...options, "test/strict.cts"], { cwd, encoding: "utf8" });

  assert.equal(done.stdout, "");
});

test("an app that imports and requires it may throw the errors of either", () => {
  class Other extends PermanentError {}
  const now = new Date();

  assert.notEqual(required.PermanentError, PermanentError);
  assert.ok(isPermanent(new required.PermanentError("no such product"), "{}"));
  assert.ok(isPermanent(new (class Mine extends required.PermanentError {})("no"), "{}", PERMANENT));
  assert.equal(retryAfterOf(new required.RetryableError("busy", { after: 60 }), now), 60);
  assert.ok(!(new required.RetryableError("busy", { after: 60 }) instanceof PermanentError));
  assert.ok(new RetryableError("busy", { after: 60 }) instanceof required.RetryableError);
  assert.ok(new Other("no") instanceof Other && !(new PermanentError("no") instanceof Other));
  assert.ok(!(undefined instanceof PermanentError) && !(new Error("no") instanceof PermanentError));
});
