#!/usr/bin/env node
// Runs pudu's binary, which is in a package of its own for each platform.
"use strict";
const { spawn } = require("node:child_process");

const musl = process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
const name = `@pudu-agent/pudu-${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/pudu`);
} catch {
  console.error(
    `pudu: the package ${name} is not installed. Either pudu has no binary for this platform, ` +
      "or npm was run without optional dependencies (--omit=optional).",
  );
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: "inherit" });
// A terminal signals both processes, a supervisor only this one.
const signals = { SIGINT: () => {}, SIGHUP: () => {}, SIGTERM: () => child.kill("SIGTERM") };
for (const [signal, act] of Object.entries(signals)) process.on(signal, act);
child.on("error", (error) => {
  console.error(`pudu: cannot run ${binary}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (!signal) process.exit(code);
  for (const name of Object.keys(signals)) process.removeAllListeners(name);
  process.kill(process.pid, signal);
});
