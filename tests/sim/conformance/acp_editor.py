"""An editor of the PyPI package agent-client-protocol, for `pudu acp` and the agents that it starts.

Arguments: the program, the folder with its configuration, the agents.
"""

import asyncio
import json
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse

program, folder, *agents = sys.argv[1:]
failed = False


def check(what, good, seen):
    global failed
    print(f"{'ok' if good else 'FAILED'}  ACP editor (PyPI): {what}" + ("" if good else f": {seen!r}"))
    failed = failed or not good


class Editor:
    def __init__(self):
        self.updates, self.option = [], "allow"

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.option))

    def said(self):
        chunks = [update for update in self.updates if update.session_update == "agent_message_chunk"]
        self.updates.clear()
        return "".join(chunk.content.text for chunk in chunks)


async def main():
    editor = Editor()
    async with spawn_agent_process(editor, program, "acp", cwd=folder, env=dict(os.environ)) as (pudu, _):
        about = await pudu.initialize(protocol_version=PROTOCOL_VERSION)
        check("initializes", about.agent_info.name == "pudu", about)
        session = (await pudu.new_session(cwd=folder, mcp_servers=[])).session_id

        async def prompt(text):
            return await pudu.prompt(session_id=session, prompt=[text_block(text)])

        ended = await prompt("hello")
        text = editor.said()
        check("has an answer", ended.stop_reason == "end_turn" and "hello" in text, text)
        for name in agents:
            for option, expect in [("allow", "yes"), ("deny", "no")]:
                editor.option = option
                await prompt("/tool invoke_acp_agent " + json.dumps({"agent": name, "prompt": "go"}))
                report = editor.said()
                check(f"{name}: a permission becomes {expect}", f"got 'go' and {expect}." in report, report)
        await pudu.load_session(cwd=folder, session_id=session, mcp_servers=[])
        kinds = {update.session_update for update in editor.updates}
        check("loads a session", {"user_message_chunk", "agent_message_chunk"} <= kinds, kinds)


asyncio.run(main())
sys.exit(failed)
