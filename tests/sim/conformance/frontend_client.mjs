// Drives the gateway as DeerFlow's web frontend does: its hook, `useStream` of LangGraph's SDK, in React with a stand-in for a
// browser's document; and every other call that it makes. The frontend itself is not needed.
//
// Usage: frontend_client.mjs PUDU PUDU_SIM NODE_FOLDER
// NODE_FOLDER has @langchain/langgraph-sdk, @langchain/core, react, react-dom and happy-dom.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { account, calls } from "./frontend/calls.mjs";
import { browser, hook } from "./frontend/hook.mjs";

const [pudu, sim, folder] = process.argv.slice(2, 5).map((path) => resolve(path));
const require = createRequire(pathToFileURL(join(folder, "package.json")));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const children = [];
const home = mkdtempSync(join(tmpdir(), "pudu-frontend-"));
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

// Starts a program, and returns the groups of the pattern in what it printed.
function start(program, args, cwd, pattern) {
  const env = { ...process.env, DEER_FLOW_HOME: cwd };
  for (const key of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]) delete env[key];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"], cwd, env });
  children.push(child);
  return new Promise((found, failed) => {
    let said = "";
    child.stdout.on("data", (data) => {
      said += data;
      const match = pattern.exec(said);
      if (match) found(match.slice(1));
    });
    child.on("exit", (code) => failed(new Error(`${program} ended with ${code}:\n${said}`)));
  });
}

async function gateway(config) {
  const own = mkdtempSync(join(home, "house-"));
  writeFileSync(join(own, "config.yaml"), `config_version: 34\n${config}`);
  const [root] = await start(pudu, ["--bind", "127.0.0.1:0"], own, /page +(http:\/\/[0-9.:]+)/);
  return root;
}

let failed = 0;
async function check(sentence, work) {
  try {
    await work();
    console.log(`ok      frontend: ${sentence}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  frontend: ${sentence}\n${error.stack}`);
  }
}

const WORDS = 60;
const simulated = ["--telegram-port", "0", "--model-port", "0", "--words", `${WORDS}`, "--words-ms", "3000"];
const [telegram, token, model] = await start(sim, simulated, home, /^telegram (\S+)$[^]*^token (\S+)$[^]*^model (\S+)$/m);
// One whose built-in model calls the tools that it is told to, one whose model takes its time, and one with accounts.
const [quick, slow, closed] = await Promise.all([
  gateway("agents_api: {enabled: true}\n"),
  gateway(`models:\n  - {name: slow, use: "langchain_openai:ChatOpenAI", model: sim-1, base_url: "${model}", api_key: sk-simulated}\n`),
  gateway(`agents_api: {enabled: true}\nchannels:\n  telegram: {enabled: true, bot_token: "${token}", api_url: "${telegram}"}\n`),
]);
const mount = await browser(load, slow);
await hook(check, { mount, load, quick, slow, words: WORDS });
await calls(check, { quick, slow });
await account(check, closed);
process.exit(failed ? 1 : 0);
