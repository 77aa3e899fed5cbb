// An agent of the npm package @agentclientprotocol/sdk: asks for permission, and says which option was chosen.
// The argument is the folder whose node_modules has the package.

import { createRequire } from 'node:module';
import { writeFileSync } from 'node:fs';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const folder = createRequire(`${process.argv[2]}/`).resolve.paths('x')[0];
const acp = await import(pathToFileURL(`${folder}/@agentclientprotocol/sdk/dist/v1/stable/acp.js`).href);
const { agent, client } = acp.methods;
let cwd;

const app = acp.agent({ name: 'node' })
  .onRequest(agent.initialize, () => ({ protocolVersion: acp.PROTOCOL_VERSION, agentCapabilities: {} }))
  .onRequest(agent.session.new, ({ params }) => {
    ({ cwd } = params);
    return { sessionId: 'node-1' };
  })
  .onRequest(agent.session.prompt, async ({ params, client: host }) => {
    const { sessionId, prompt } = params;
    const text = prompt.map((block) => block.text).join('');
    const update = (body) => host.notify(client.session.update, { sessionId, update: body });
    await update({ sessionUpdate: 'tool_call', toolCallId: 't1', title: 'Look around', kind: 'read', status: 'in_progress' });
    await update({ sessionUpdate: 'tool_call_update', toolCallId: 't1', status: 'completed' });
    const { outcome } = await host.request(client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: 't2', title: 'Write a file', rawInput: { path: 'a.txt' } },
      options: [
        { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
        { optionId: 'no', name: 'Reject', kind: 'reject_once' },
      ],
    });
    writeFileSync(`${cwd}/node.txt`, 'from Node');
    const chosen = outcome.optionId ?? outcome.outcome;
    await update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: `Node got '${text}' and ${chosen}.` } });
    return { stopReason: 'end_turn' };
  });
app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
