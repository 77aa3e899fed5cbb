// An editor of the npm package @agentclientprotocol/sdk, for `pudu acp` and the agents that it starts.
// Arguments: the program, the folder with its configuration, the folder whose node_modules has the package, the agents.

import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const [program, cwd, packages, ...agents] = process.argv.slice(2);
const folder = createRequire(`${packages}/`).resolve.paths('x')[0];
const acp = await import(pathToFileURL(`${folder}/@agentclientprotocol/sdk/dist/v1/stable/acp.js`).href);
const { agent, client } = acp.methods;

let failed = 0;
function check(what, good, seen) {
  console.log(`${good ? 'ok' : 'FAILED'}  ACP editor (npm): ${what}${good ? '' : `: ${JSON.stringify(seen)}`}`);
  failed ||= good ? 0 : 1;
}

const child = spawn(program, ['acp'], { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
let updates = [];
let option = 'allow';
const asked = [];
const app = acp.client({ name: 'editor' })
  .onNotification(client.session.update, ({ params }) => { updates.push(params.update); })
  .onRequest(client.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall.title);
    return { outcome: { outcome: 'selected', optionId: option } };
  });
const said = () => {
  const chunks = updates.filter((update) => update.sessionUpdate === 'agent_message_chunk');
  updates = [];
  return chunks.map((update) => update.content.text).join('');
};
await app.connectWith(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)), async (pudu) => {
  const about = await pudu.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  check('initializes', about.agentInfo?.name === 'pudu' && about.agentCapabilities.loadSession, about);
  const { sessionId } = await pudu.request(agent.session.new, { cwd, mcpServers: [] });
  const prompt = (text) => pudu.request(agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  const hello = await prompt('hello');
  const text = said();
  check('has an answer', hello.stopReason === 'end_turn' && text.includes('hello'), text);
  for (const name of agents) {
    for (const [choice, expect] of [['allow', 'yes'], ['deny', 'no']]) {
      option = choice;
      await prompt(`/tool invoke_acp_agent ${JSON.stringify({ agent: name, prompt: 'go' })}`);
      const report = said();
      check(`${name}: a permission becomes ${expect}`, report.includes(`got 'go' and ${expect}.`), report);
    }
    await prompt(`/tool read_file ${JSON.stringify({ path: `/mnt/acp-workspace/${name}.txt` })}`);
    const file = said();
    check(`${name}: its file is read`, file.includes('from '), file);
  }
  check('was asked', asked.length === 2 * agents.length && asked.every((title) => title.includes('Write a file')), asked);
  updates = [];
  await pudu.request(agent.session.load, { sessionId, cwd, mcpServers: [] });
  const kinds = new Set(updates.map((update) => update.sessionUpdate));
  const whole = ['user_message_chunk', 'agent_message_chunk'].every((kind) => kinds.has(kind));
  check('loads a session', whole && (!agents.length || kinds.has('tool_call_update')), [...kinds]);
  const { sessions } = await pudu.request(agent.session.list, {});
  check('lists sessions', sessions.some((session) => session.sessionId === sessionId), sessions);
});
child.stdin.end();
process.exit(failed);
