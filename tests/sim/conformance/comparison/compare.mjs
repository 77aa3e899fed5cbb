// Compares the answers of LangGraph's own server with those of pudu, field by field: the same calls, over the same model.
// Fails on a difference that `differences.md` does not list, and on one of the list that is not there any more. Then holds that
// each call of the client is made here, or stands in the documents among those that are refused.
//
// Usage: compare.mjs PUDU PUDU_SIM NODE_FOLDER [--show]
// NODE_FOLDER has @langchain/langgraph-api and what it needs. `--show` prints every difference instead.
import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { TALKS as CALLS } from "./calls.mjs";
import { TALKS as CLIENT, callsOf, recorded, refusals, refusedCalls } from "./client.mjs";
import { Observer, differences } from "./observer.mjs";
import { TALKS as REFUSALS } from "./refusals.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const [pudu, sim, folder] = process.argv.slice(2, 5).map((path) => resolve(path));
const require = createRequire(pathToFileURL(join(folder, "package.json")));
const { Client } = await import(pathToFileURL(require.resolve("@langchain/langgraph-sdk")));

const children = [];
const home = mkdtempSync(join(tmpdir(), "pudu-compare-"));
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(home, { recursive: true, force: true });
});

// Starts a program, and says what it printed where the pattern is found.
function start(program, args, options, pattern) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], ...options });
  children.push(child);
  return new Promise((found, failed) => {
    let said = "";
    const late = setTimeout(() => failed(new Error(`${program} did not start:\n${said}`)), 60_000);
    child.stdout.on("data", (data) => {
      said += data;
      const match = pattern.exec(said);
      if (!match) return;
      clearTimeout(late);
      found(match[1]);
    });
    child.on("exit", (code) => failed(new Error(`${program} ended with ${code}:\n${said}`)));
  });
}

async function servers() {
  const model = (words) => start(sim, ["--telegram-port", "0", "--model-port", "0", ...words], {}, /^model (\S+)$/m);
  const [quick, slow] = await Promise.all([model([]), model(["--words", "60", "--words-ms", "24000"])]);
  const entry = (name, url) => `  - {name: ${name}, use: "langchain_openai:ChatOpenAI", model: sim-1, base_url: "${url}", api_key: sk-simulated}\n`;
  writeFileSync(join(home, "config.yaml"), `config_version: 34\nmodels:\n${entry("quick", quick)}${entry("slow", slow)}`);
  for (const file of ["graph.mjs", "server.mjs"]) copyFileSync(join(HERE, file), join(folder, file));
  rmSync(join(folder, ".langgraph_api"), { recursive: true, force: true });
  const env = { ...process.env, QUICK_MODEL: quick, SLOW_MODEL: slow, DEER_FLOW_HOME: home, LANGSMITH_TRACING: "false", LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: "1" };
  return Promise.all([
    start(process.execPath, ["server.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] }, /listening at (\S+)/),
    start(pudu, ["--bind", "127.0.0.1:0"], { cwd: home, env, stdio: ["ignore", "pipe", "ignore"] }, /page +(http:\/\/[0-9.:]+)/),
  ]);
}

// Has all talks with one server, side by side: each has threads of its own.
async function talk(root, prefix, made) {
  const seen = new Map();
  const talks = Object.entries({ ...CALLS, ...REFUSALS, ...CLIENT });
  await Promise.all(
    talks.map(async ([name, talk]) => {
      const client = recorded(new Client({ apiUrl: `${root}${prefix}`, callerOptions: { maxRetries: 0 } }), made);
      const on = new Observer({ root, prefix, client, seen });
      await talk(on).catch((error) => {
        throw new Error(`${root}: ${name}: ${error.stack}`, { cause: error.cause });
      });
    }),
  );
  return seen;
}

const short = (value) => (value === undefined ? "absent" : (JSON.stringify(value) ?? "").slice(0, 70).replaceAll("|", "/"));
const glob = (pattern) => new RegExp(`^${pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "s");

// Reads the list: a row has the call, the field, both values, and the reason.
function listed() {
  const rows = readFileSync(join(HERE, "differences.md"), "utf8").split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((line) => {
    const cells = line.slice(1, -1).split("|").map((cell) => cell.trim());
    const [what, path, first, second] = cells.slice(0, 4).map((cell) => cell.replace(/^`|`$/g, ""));
    if (cells.length !== 5 || !cells[4]) throw new Error(`this row has no reason: ${line}`);
    // Where the reference is not always the same, a row need not hold.
    const times = cells[4].startsWith("at times: ") ? 1 : 0;
    return { line, what: glob(what), path: glob(path), first: glob(first), second: glob(second), times };
  });
}

const failures = [];
function check(sentence, wrong) {
  console.log(`${wrong.length === 0 ? "ok     " : "FAILED "} comparison: ${sentence}`);
  for (const line of wrong) console.log(`        ${line}`);
  failures.push(...wrong);
}

const [reference, daemon] = await servers();
console.log(`        LangGraph at ${reference}, pudu at ${daemon}`);
const made = new Set();
const [first, second] = await Promise.all([talk(reference, "", new Set()), talk(daemon, "/api", made)]);
const whats = [...new Set([...first.keys(), ...second.keys()])];
const found = whats.flatMap((what) => differences(what, first.get(what), second.get(what)));
if (process.argv.includes("--show")) {
  for (const { what, path, first, second } of found) console.log(`| \`${what}\` | \`${path}\` | \`${short(first)}\` | \`${short(second)}\` |`);
  process.exit(0);
}
const rows = listed();
const unlisted = found.filter((one) => {
  const known = rows.filter((row) => row.what.test(one.what) && row.path.test(one.path) && row.first.test(short(one.first)) && row.second.test(short(one.second)));
  for (const row of known) row.times += 1;
  return known.length === 0;
});
check(`${whats.length} answers are those of LangGraph's server but for ${found.length} fields that are listed`,
  unlisted.map(({ what, path, first, second }) => `| \`${what}\` | \`${path}\` | \`${short(first)}\` | \`${short(second)}\` | not listed |`));
check(`${rows.length} rows of the list still hold`, rows.filter((row) => row.times === 0).map((row) => row.line));
const client = new Client({ apiUrl: `${daemon}/api`, callerOptions: { maxRetries: 0 } });
const refused = refusedCalls(readFileSync(join(HERE, "../../../../docs/http-api.md"), "utf8"));
const calls = callsOf(client);
// Calls that langgraph_client.py checks on pudu alone: versions of assistants, and the events of a thread.
for (const name of ["assistants.get_versions", "assistants.set_latest", "threads.stream"]) made.add(name);
check(`each of the client's ${calls.length} calls is made here or refused in the documents`,
  calls.filter((name) => made.has(name) === refused.has(name)));
check(`${refused.size} calls are refused as the documents say`, await refusals(client, refused));
process.exit(failures.length ? 1 : 0);
