"""An agent of the PyPI package agent-client-protocol: asks for permission, and says which option was chosen."""

import asyncio

from acp import PROTOCOL_VERSION, InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from acp.helpers import start_tool_call, text_block, tool_content, update_agent_message_text, update_tool_call
from acp.schema import PermissionOption, ToolCallUpdate


class PythonAgent:
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **_):
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd, mcp_servers=None, **_):
        self.cwd = cwd
        return NewSessionResponse(session_id="python-1")

    async def prompt(self, session_id, prompt, **_):
        text = "".join(block.text for block in prompt)
        update = self.client.session_update
        await update(session_id=session_id, update=start_tool_call("t1", "Look around", kind="read", status="in_progress"))
        content = [tool_content(text_block("nothing"))]
        await update(session_id=session_id, update=update_tool_call("t1", status="completed", content=content))
        asked = await self.client.request_permission(
            session_id=session_id,
            tool_call=ToolCallUpdate(tool_call_id="t2", title="Write a file", raw_input={"path": "a.txt"}),
            options=[
                PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
                PermissionOption(option_id="no", name="Reject", kind="reject_once"),
            ],
        )
        chosen = getattr(asked.outcome, "option_id", asked.outcome.outcome)
        with open(f"{self.cwd}/python.txt", "w") as file:
            file.write("from Python")
        await update(session_id=session_id, update=update_agent_message_text(f"Python got {text!r} and {chosen}."))
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        pass


asyncio.run(run_agent(PythonAgent()))
