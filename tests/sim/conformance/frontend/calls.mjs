// The calls of the frontend beside those of its hook, row by row: the status, and the keys that the frontend reads.
import { request } from "node:http";
import { holds } from "./hook.mjs";

const OK = 200;
// What pudu has not; docs/http-api.md says what the frontend does then.
const ABSENT = [
  ["GET", "/integrations/lark/status", "no integration of Lark's applications"],
  ["GET", "/threads/{thread}/mcp-tasks", "not asked: `features` says that they are off"],
  ["POST", "/threads/{thread}/browser/navigate", "not asked: `features` says that it is off", { url: "http://example.com" }],
  ["GET", "/threads/{thread}/browser/stream", "not asked, likewise"],
  ["POST", "/channels/telegram/runtime-config", "not offered: no provider has credential fields", {}],
];

const has = (...keys) => (body) => keys.every((key) => body !== null && typeof body === "object" && key in body);
const list = (key) => (body) => Array.isArray(key === undefined ? body : body[key]);

class Caller {
  constructor(root, names = {}) {
    Object.assign(this, { root, names, headers: {} });
  }

  async ask(method, path, body, headers = {}) {
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => this.names[name] ?? name);
    const form = body instanceof FormData || body instanceof URLSearchParams;
    const kind = body === undefined || form ? {} : { "content-type": "application/json" };
    const sent = body === undefined || form ? body : JSON.stringify(body);
    const answer = await fetch(`${this.root}/api${filled}`, { method, headers: { ...kind, ...this.headers, ...headers }, body: sent, redirect: "manual" });
    const text = await answer.text();
    const json = answer.headers.get("content-type")?.includes("json");
    return { status: answer.status, headers: answer.headers, body: json ? JSON.parse(text) : text };
  }

  // Makes the call of a row, and holds its answer to what the frontend needs of it.
  async row(method, path, { body, headers, status = OK, needs = () => true } = {}) {
    const answer = await this.ask(method, path, body, headers);
    const told = [method, path, answer.status, answer.body];
    holds(`${method} ${path} answers ${status}`, answer.status === status, told);
    holds(`${method} ${path} has what is needed`, needs(answer.body, answer.headers), told);
    return answer;
  }
}

const say = (text) => ({
  input: { messages: [{ type: "human", content: [{ type: "text", text }], additional_kwargs: {} }] },
  config: { recursion_limit: 1000 },
  context: { mode: "flash", thinking_enabled: false, is_plan_mode: false, subagent_enabled: false },
  stream_mode: ["messages-tuple", "values", "updates", "custom"],
  assistant_id: "lead_agent",
  on_disconnect: "continue",
});

// Has a run, and returns its id.
async function runs(on, body) {
  const { headers, body: text } = await on.row("POST", "/langgraph/threads/{thread}/runs/stream", { body });
  holds("the answer passes proxies as it comes", headers.get("cache-control") === "no-cache, no-transform", [...headers]);
  const place = /^\/api\/threads\/([^/]+)\/runs\/([^/]+)$/.exec(headers.get("content-location"));
  holds("the run is told", place?.[1] === on.names.thread, [...headers]);
  const names = text.split("\n").filter((line) => line.startsWith("event: ")).map((line) => line.slice(7));
  holds("frames have the wire's names", names[0] === "metadata" && names.at(-1) === "end" && names.includes("messages") && names.includes("values"), names);
  return place[2];
}

export async function calls(check, { quick }) {
  const on = new Caller(quick, { thread: crypto.randomUUID() });
  let row = on.row.bind(on);

  await check("a page's first load has its facts", async () => {
    await row("GET", "/models", { needs: ({ models }) => models.length > 0 && models.every(has("name", "display_name", "supports_thinking", "supports_reasoning_effort")) });
    await row("GET", "/features", { needs: ({ agents_api, browser_control, mcp_tasks }) => agents_api.enabled === true && !browser_control.enabled && !mcp_tasks.enabled });
    await row("GET", "/skills", { needs: ({ skills }) => skills.length > 0 && skills.every(has("name", "description", "category", "enabled", "license", "editable")) });
    await row("GET", "/suggestions/config", { needs: has("enabled") });
    await row("GET", "/channels/providers", { needs: list("providers") });
    await row("GET", "/threads/{thread}/uploads/limits", { needs: has("max_files", "max_file_size", "max_total_size") });
    await row("POST", "/langgraph/threads/search", { body: { limit: 50, sort_by: "updated_at", sort_order: "desc", select: ["thread_id", "updated_at", "values", "metadata"] }, needs: list() });
  });

  await check("DeerFlow's nginx passes its own host, and no other page gets through", async () => {
    // `Host` is the browser's, with the port of nginx; fetch would not send another one.
    const status = (host, origin) =>
      new Promise((done, failed) => {
        const headers = { host, ...(origin && { origin }), "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "http", "x-real-ip": "127.0.0.1", connection: "close" };
        request(`${quick}/api/models`, { headers }, (answer) => (answer.resume(), done(answer.statusCode))).on("error", failed).end();
      });
    for (const [host, origin, expected] of [
      ["localhost:2026", "http://localhost:2026", 200],
      ["localhost:2026", null, 200],
      ["127.0.0.1:2026", "http://127.0.0.1:2026", 200],
      ["localhost:2026", "http://localhost:3000", 403],
      ["evil.example:2026", "http://evil.example:2026", 403],
    ]) {
      holds(`${host} from ${origin}`, (await status(host, origin)) === expected, await status(host, origin));
    }
  });

  await check("a turn has its calls", async () => {
    await row("POST", "/langgraph/threads", { body: { thread_id: on.names.thread, metadata: {} }, needs: ({ thread_id }) => thread_id === on.names.thread });
    on.names.run = await runs(on, say('/tool write_file {"description": "d", "path": "/mnt/user-data/outputs/a.txt", "content": "grass\\nmoss\\n"}'));
    const { body: past } = await row("POST", "/langgraph/threads/{thread}/history", { body: { limit: 1 }, needs: (states) => states.length === 1 && has("values", "checkpoint_id", "metadata", "created_at")(states[0]) && !has("checkpoint")(states[0]) });
    const { body: page } = await row("GET", "/threads/{thread}/messages/page", { needs: has("data", "has_more", "next_before_seq") });
    const rows = ["thread_id", "run_id", "event_type", "category", "content", "metadata", "seq", "created_at", "feedback"];
    holds("rows are whole", page.data.length === 4 && page.data.every(has(...rows)) && page.data.every(({ seq }, at, all) => at === 0 || seq > all[at - 1].seq), page.data);
    const ids = (messages) => messages.map(({ id }) => id).join();
    holds("answers have the ids of the stream", ids(page.data.map(({ content }) => content)) === ids(past[0].values.messages), page.data);
    on.names.seq = page.data[2].seq;
    await row("GET", "/threads/{thread}/messages/page?before_seq={seq}", { needs: ({ data }) => data.length === 2 });
    on.names.asked = page.data[0].content.id;
    on.names.answer = page.data[3].content.id;
    await row("GET", "/langgraph/threads/{thread}", { needs: ({ status, values }) => status === "idle" && values.messages.length === 4 });
    await row("GET", "/langgraph/threads/{thread}/state", { needs: has("values", "next", "checkpoint", "tasks") });
    await row("GET", "/threads/{thread}/token-usage", { needs: ({ total_tokens, total_runs }) => total_tokens > 0 && total_runs === 1 });
    await row("POST", "/threads/{thread}/suggestions", { body: { messages: [{ role: "user", content: "hello" }], n: 3 }, needs: list("suggestions") });
    await row("GET", "/threads/{thread}/runs/{run}/workspace-changes?include_files=true&include_diff=false", {
      needs: ({ available, version, summary, files, limits }) =>
        available && version === 1 && summary.created === 1 && summary.additions === 2 && files[0].path.endsWith("/outputs/a.txt") && files[0].diff === null && limits,
    });
    await row("GET", "/threads/{thread}/runs/{run}/workspace-changes?include_files=true&include_diff=true", { needs: ({ files }) => files[0].diff.includes("+moss") });
  });

  await check("deeds in the chat", async () => {
    const file = new FormData();
    file.append("files", new Blob(["hay"]), "b.txt");
    await row("POST", "/threads/{thread}/uploads", { body: file, needs: ({ success, files }) => success && has("filename", "size", "virtual_path", "artifact_url")(files[0]) });
    await row("GET", "/threads/{thread}/uploads/list", { needs: ({ files, count }) => count === 1 && files[0].filename === "b.txt" });
    await row("DELETE", "/threads/{thread}/uploads/b.txt", { needs: has("success") });
    await row("GET", "/threads/{thread}/artifacts/mnt/user-data/outputs/a.txt", { headers: { range: "bytes=0-4" }, status: 206, needs: (text) => text === "grass" });
    const digest = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from("grass\nmoss\n"))).toString("hex");
    await row("PUT", "/threads/{thread}/artifacts/mnt/user-data/outputs/a.txt", { body: { content: "hay\n", expected_sha256: digest }, needs: has("sha256") });
    const { body: again } = await row("POST", "/threads/{thread}/runs/regenerate/prepare", { body: { message_id: on.names.answer }, needs: has("input", "checkpoint", "metadata", "target_run_id") });
    await runs(on, { ...say(""), input: again.input, checkpoint: again.checkpoint, metadata: again.metadata });
    const { body: page } = await row("GET", "/threads/{thread}/messages/page", { needs: ({ data }) => data.length === 4 });
    on.names.asked = page.data[0].content.id;
    const { body: edited } = await row("POST", "/threads/{thread}/runs/edit-regenerate/prepare", {
      body: { human_message_id: on.names.asked, replacement_text: "hello" },
      needs: has("input", "checkpoint", "metadata", "target_run_id", "replacement_human_message_id"),
    });
    on.names.run = await runs(on, { ...say(""), input: edited.input, checkpoint: edited.checkpoint, metadata: edited.metadata });
    await row("GET", "/threads/{thread}/messages/page", { needs: ({ data }) => data.length === 2 && JSON.stringify(data[0].content).includes("hello") });
    await row("POST", "/langgraph/threads/{thread}/state", { body: { values: { title: "Grass" } } });
    await row("GET", "/langgraph/threads/{thread}", { needs: ({ values }) => values.title === "Grass" });
    await row("PATCH", "/langgraph/threads/{thread}", { body: { metadata: { deerflow_pinned: true } }, needs: ({ metadata }) => metadata.deerflow_pinned === true });
    await row("PUT", "/threads/{thread}/goal", { body: { objective: "graze" }, needs: ({ goal }) => goal.objective === "graze" && goal.status === "active" });
    await row("GET", "/threads/{thread}/goal", { needs: ({ goal }) => has("continuation_count", "max_continuations")(goal) });
    await row("DELETE", "/threads/{thread}/goal", { needs: ({ goal }) => goal === null });
    await row("POST", "/threads/{thread}/compact", { body: {}, needs: has("compacted", "reason", "removed_message_count", "preserved_message_count") });
    await row("PUT", "/threads/{thread}/runs/{run}/feedback", { body: { rating: 1 }, needs: ({ rating }) => rating === 1 });
    await row("DELETE", "/threads/{thread}/runs/{run}/feedback", {});
    await row("GET", "/threads/{thread}/runs/{run}/events?event_types=subagent.step&task_id=none", { needs: list() });
    await row("GET", "/langgraph/threads/{thread}/runs", { needs: (runs) => runs.length >= 3 && runs.every(has("run_id", "status", "created_at")) });
    await row("GET", "/langgraph/threads/{thread}/runs/{run}", { needs: ({ status }) => status === "success" });
    await row("POST", "/input-polish", { body: { text: "helo", locale: "en-US" }, needs: has("rewritten_text", "changed") });
    const { body: page2 } = await row("GET", "/threads/{thread}/messages/page");
    on.names.answer = page2.data.at(-1).content.id;
    const { body: branch } = await row("POST", "/threads/{thread}/branches", { body: { message_id: on.names.answer, message_ids: [on.names.answer] }, needs: has("thread_id", "parent_thread_id", "branched_from_message_id") });
    await row("DELETE", `/threads/${branch.thread_id}`);
  });

  await check("a run in mid stream is found again, stopped, and its thread deleted twice", async () => {
    on.names.thread = crypto.randomUUID();
    await row("POST", "/langgraph/threads", { body: { thread_id: on.names.thread } });
    const { body: run } = await row("POST", "/langgraph/threads/{thread}/runs", { body: say('/tool bash {"description": "d", "command": "sleep 30"}') });
    on.names.run = run.run_id;
    await row("GET", "/langgraph/threads/{thread}/runs/{run}", { needs: ({ status }) => ["pending", "running"].includes(status) });
    const followed = on.row("GET", "/langgraph/threads/{thread}/runs/{run}/stream?cancel_on_disconnect=0", { headers: { "last-event-id": "-1" }, needs: (text) => text.startsWith("event: metadata") && text.includes("event: end") });
    await row("POST", "/langgraph/threads/{thread}/runs/{run}/cancel?wait=0&action=interrupt", { status: 202 });
    await followed;
    await row("GET", "/langgraph/threads/{thread}/runs/{run}", { needs: ({ status }) => status === "interrupted" });
    await row("DELETE", "/langgraph/threads/{thread}");
    await row("DELETE", "/threads/{thread}", { status: 404, needs: has("detail") });
  });

  await check("settings and pages", async () => {
    await row("GET", "/channels/connections", { needs: list("connections") });
    await row("GET", "/memory", { needs: has("version", "user", "history", "facts") });
    await row("GET", "/memory/export", { needs: has("facts") });
    const { body: made } = await row("POST", "/memory/facts", { body: { content: "Likes clover", category: "preference", confidence: 0.9 }, needs: ({ facts }) => facts.length === 1 });
    on.names.fact = made.facts[0].id;
    await row("PATCH", "/memory/facts/{fact}", { body: { content: "Likes moss" }, needs: ({ facts }) => facts[0].content === "Likes moss" });
    await row("DELETE", "/memory/facts/{fact}", { needs: ({ facts }) => facts.length === 0 });
    await row("POST", "/memory/import", { body: made, needs: ({ facts }) => facts.length === 1 });
    await row("DELETE", "/memory", { needs: ({ facts }) => facts.length === 0 });
  });

  await check("scheduled tasks", async () => {
    const spec = { cron: "0 9 * * 1-5" };
    const body = { title: "News", prompt: "hello", schedule_type: "cron", schedule_spec: spec, timezone: "Asia/Shanghai", context_mode: "fresh_thread_per_run" };
    const keys = ["id", "thread_id", "context_mode", "title", "prompt", "schedule_type", "schedule_spec", "timezone", "status", "next_run_at", "last_run_at", "last_error", "run_count"];
    const { body: task } = await row("POST", "/scheduled-tasks", { body, needs: has(...keys) });
    on.names.task = task.id;
    await row("GET", "/scheduled-tasks", { needs: (tasks) => tasks.length === 1 && has(...keys)(tasks[0]) });
    await row("GET", "/scheduled-tasks/{task}", { needs: ({ schedule_spec }) => schedule_spec.cron === spec.cron });
    await row("PATCH", "/scheduled-tasks/{task}", { body: { title: "Weather", schedule_spec: { cron: "0 8 * * *" } }, needs: ({ title }) => title === "Weather" });
    await row("POST", "/scheduled-tasks/{task}/pause", { needs: ({ status }) => status === "paused" });
    await row("POST", "/scheduled-tasks/{task}/resume", { needs: ({ status }) => status === "enabled" });
    await row("POST", "/scheduled-tasks/{task}/trigger", { needs: ({ id, triggered }) => id === on.names.task && triggered === true });
    const { body: runs } = await row("GET", "/scheduled-tasks/{task}/runs", { needs: (runs) => runs.length === 1 && has("id", "task_id", "thread_id", "run_id", "scheduled_for", "trigger", "status", "error")(runs[0]) });
    await row("GET", `/threads/${runs[0].thread_id}/scheduled-tasks`, { needs: list() });
    await row("DELETE", "/scheduled-tasks/{task}", { needs: ({ id, deleted }) => id === on.names.task && deleted === true });
    await row("GET", "/scheduled-tasks/{task}", { status: 404, needs: ({ detail }) => detail === "Scheduled task not found" });
    await row("POST", "/scheduled-tasks", { body: { ...body, timezone: "Mars/Base" }, status: 422, needs: has("detail") });
  });

  await check("what is not there says so", async () => {
    for (const [method, path, why, body] of ABSENT) {
      await row(method, path, { body, status: 404, needs: ({ detail }) => typeof detail === "string" && detail.includes("pudu") });
      console.log(`absent  frontend: ${method} ${path}: ${why}`);
    }
  });
}

const ADA = { email: "ada@example.com", password: "correct horse battery" };

export async function account(check, root) {
  const on = new Caller(root, { thread: crypto.randomUUID() });
  const row = on.row.bind(on);
  const login = ({ headers }) => {
    const cookies = headers.getSetCookie().map((line) => line.split(";")[0]);
    const csrf = cookies.find((cookie) => cookie.startsWith("csrf_token="))?.slice("csrf_token=".length);
    holds("both cookies are set", csrf && cookies.some((cookie) => cookie.startsWith("access_token=")), cookies);
    on.headers = { cookie: cookies.join("; "), "x-csrf-token": csrf };
  };

  await check("somebody sets it up, signs in and changes the password", async () => {
    await row("GET", "/v1/auth/setup-status", { needs: ({ needs_setup }) => needs_setup === true });
    login(await row("POST", "/v1/auth/initialize", { body: ADA, status: 201, needs: has("id", "email", "system_role") }));
    await row("GET", "/v1/auth/me", { needs: ({ email, system_role }) => email === ADA.email && system_role === "admin" });
    await row("POST", "/v1/auth/change-password", { body: { current_password: ADA.password, new_password: `${ADA.password} staple` }, needs: has("message") });
    await row("POST", "/v1/auth/logout", {});
    on.headers = {};
    await row("GET", "/v1/auth/me", { status: 401 });
    await row("GET", "/v1/auth/setup-status", { needs: ({ needs_setup }) => needs_setup === false });
    await row("GET", "/v1/auth/providers", { needs: list("providers") });
    login(await row("POST", "/v1/auth/login/local", { body: new URLSearchParams({ username: ADA.email, password: `${ADA.password} staple` }), needs: has("expires_in", "needs_setup") }));
  });

  await check("a page of somebody who is signed in has its calls, and each write shows its CSRF token", async () => {
    await row("POST", "/langgraph/threads", { body: { thread_id: on.names.thread } });
    await runs(on, say("hello"));
    for (const path of ["/mcp/config", "/skills", "/channels/connections", "/memory", "/models"]) await row("GET", path);
    const server = { enabled: false, type: "http", url: "http://127.0.0.1:9/mcp", headers: {}, description: "d" };
    await row("PUT", "/mcp/config", { body: { mcp_servers: { herd: server } }, needs: ({ mcp_servers }) => "herd" in mcp_servers });
    await row("PATCH", "/mcp/config", { body: { server_name: "herd", enabled: false }, needs: ({ mcp_servers }) => mcp_servers.herd.enabled === false });
    const { body: skills } = await row("GET", "/skills");
    on.names.skill = skills.skills[0].name;
    await row("PUT", "/skills/{skill}", { body: { enabled: false }, needs: ({ enabled }) => enabled === false });
    await row("GET", "/agents/check?name=herder", { needs: ({ available }) => available === true });
    await row("POST", "/agents", { body: { name: "herder", description: "d", soul: "You herd." }, status: 201, needs: has("name", "description") });
    await row("GET", "/agents", { needs: ({ agents }) => agents.length === 1 });
    await row("GET", "/agents/herder", { needs: ({ soul }) => soul === "You herd." });
    await row("PUT", "/agents/herder", { body: { description: "other" }, needs: ({ description }) => description === "other" });
    await row("DELETE", "/agents/herder", { status: 204 });
    await row("GET", "/channels/providers", { needs: ({ providers }) => has("provider", "display_name", "connectable", "connection_status", "credential_fields")(providers[0]) });
    await row("POST", "/channels/telegram/connect", { needs: has("provider", "mode", "url", "code", "instruction", "expires_in") });
    await row("DELETE", "/channels/connections/nobody", { status: 404, needs: has("detail") });
    const skill = "---\\nname: herding\\ndescription: Herds.\\n---\\nHerd.\\n";
    const script = `cd /mnt/user-data/outputs; mkdir herding; printf -- '${skill}' > herding/SKILL.md; python3 -m zipfile -c herding.skill herding/`;
    await runs(on, say(`/tool bash ${JSON.stringify({ description: "d", command: script })}`));
    const archive = { thread_id: on.names.thread, path: "mnt/user-data/outputs/herding.skill" };
    await row("POST", "/skills/install", { body: archive, needs: ({ success, skill_name }) => success && skill_name === "herding" });
    const { "x-csrf-token": token, ...headers } = on.headers;
    on.headers = headers;
    await row("POST", "/langgraph/threads", { body: {}, status: 403 });
    on.headers["x-csrf-token"] = token;
    await row("DELETE", "/langgraph/threads/{thread}");
  });
}
