#!/bin/sh
# Proves the simulators with clients that others wrote: python-telegram-bot, openai, anthropic, google-genai, ollama,
# lark-oapi, dingtalk-stream, slack_sdk, docker, agent-sandbox, kubernetes and authlib from PyPI, @larksuiteoapi/node-sdk and
# discord.js from npm. Moving in from DeerFlow, with langgraph, by which it stores its threads. And the gateway, with LangGraph's
# clients for Python and JavaScript, by itself, killed again and again, beside LangGraph's own server, and in React, as
# DeerFlow's web frontend uses it; with schemathesis, which holds it to its OpenAPI document; with a table of DeerFlow's
# routes. And the client of MCP servers with the protocol's conformance suite. And both sides of the Agent Client Protocol, with agent-client-protocol from PyPI and
# @agentclientprotocol/sdk from npm.
# Prints a line for each check and fails if any does. Needs python3, cargo, and a package index; npm where there is one.
# CONFORMANCE_VENV keeps the clients between runs; otherwise they are installed afresh.
# CONFORMANCE_BINARIES is a folder with pudu, pudu-sim and mcp-conformance; otherwise they are built.
# CONFORMANCE_ALL=1 takes a client that cannot be asked for one that fails.
set -eu
cd "$(dirname "$0")"
here=$PWD

work=$(mktemp -d)
sim=
gateway=
trap '[ -z "$sim$gateway" ] || kill $sim $gateway 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

venv=${CONFORMANCE_VENV:-$work/venv}
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    python-telegram-bot openai anthropic google-genai ollama lark-oapi dingtalk-stream slack_sdk docker agent-sandbox \
    kubernetes authlib httpx pyyaml langgraph langgraph-sdk langgraph-checkpoint-sqlite langgraph-checkpoint-postgres langchain-core 'psycopg[binary]' \
    schemathesis==4.32.5 agent-client-protocol

binaries=${CONFORMANCE_BINARIES:-}
if [ -z "$binaries" ]; then
    cargo build --quiet -p pudu-sim -p pudu -p pudu-mcp --bin pudu-sim --bin pudu --bin mcp-conformance
    binaries=$(cargo metadata --format-version 1 --no-deps |
        "$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')/debug
fi

mkdir "$work/aio"
"$binaries/pudu-sim" --telegram-port 0 --model-port 0 --feishu-port 0 --dingtalk-port 0 --slack-port 0 --discord-port 0 \
    --docker-port 0 --aio-port 0 --aio-folder "$work/aio" --kubernetes-port 0 --oidc-port 0 >"$work/ports" &
sim=$!
tries=0
until grep -q '^model ' "$work/ports"; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || { echo "the simulator did not start" >&2; exit 1; }
    sleep 0.1
done
value() { sed -n "s/^$1 //p" "$work/ports"; }

failed=0
skip() {
    echo "skipped: $1"
    [ "${CONFORMANCE_ALL:-0}" = 0 ] || failed=1
}
"$venv/bin/python" telegram_client.py "$(value telegram)" "$(value token)" || failed=1
"$venv/bin/python" feishu_client.py "$(value feishu)" "$(value feishu-app-id)" "$(value feishu-app-secret)" ||
    failed=1
if command -v npm >/dev/null; then
    npm install --silent --prefix "$work/node" @larksuiteoapi/node-sdk discord.js@14
    node feishu_client.mjs "$(value feishu)" "$(value feishu-app-id)" "$(value feishu-app-secret)" "$work/node" ||
        failed=1
    node discord_client.mjs "$(value discord)" "$(value discord-bot-token)" "$work/node" || failed=1
    # The suite needs Node 22, which npm has for each platform.
    npm install --silent --prefix "$work/mcp" @modelcontextprotocol/conformance@0.2.0-alpha.12 \
        "node-$(node -p 'process.platform + "-" + process.arch')@22"
    for version in 2025-11-25 2026-07-28; do
        (cd "$work" && timeout 300 "$work"/mcp/node_modules/node-*/bin/node \
            "$work/mcp/node_modules/@modelcontextprotocol/conformance/dist/index.js" client --suite all \
            --spec-version "$version" --command "$binaries/mcp-conformance" \
            --expected-failures "$here/mcp_expected_failures.yaml" >"$work/mcp-$version" 2>&1) ||
            { cat "$work/mcp-$version"; failed=1; }
        echo "MCP $version: $(sed -n 's/^Total: //p' "$work/mcp-$version")"
    done
else
    skip "without npm Discord's client, Feishu's other one and the suite for MCP clients are not asked"
fi
"$venv/bin/python" openai_client.py "$(value model)" || failed=1
"$venv/bin/python" responses_client.py "$(value model)" || failed=1
for client in anthropic gemini ollama; do
    "$venv/bin/python" "${client}_client.py" "$(value model-root)" || failed=1
done
"$venv/bin/python" dingtalk_client.py "$(value dingtalk)" "$(value dingtalk-id)" \
    "$(value dingtalk-secret)" "$(value dingtalk-template)" || failed=1
"$venv/bin/python" slack_client.py "$(value slack)" "$(value slack-bot-token)" "$(value slack-app-token)" || failed=1
"$venv/bin/python" oidc_client.py "$(value oidc)" "$(value oidc-client)" "$(value oidc-secret)" || failed=1
"$venv/bin/python" docker_client.py "$(value docker)" || failed=1
"$venv/bin/python" aio_client.py "$(value aio)" "$(cd "$work/aio" && pwd -P)" || failed=1
if unshare --mount --pid --fork --map-root-user true 2>/dev/null; then
    "$venv/bin/python" kubernetes_client.py "$(value kubernetes)" "$(value kubernetes-token)" || failed=1
else
    skip "without namespaces the cluster's node cannot run Pods"
fi
# The Agent Client Protocol, with other programs on both sides of pudu.
mkdir "$work/acp"
agents="python"
printf 'config_version: 34\nacp_agents:\n  python: {command: %s, args: [%s], description: Python}\n' \
    "$venv/bin/python" "$here/acp_agent.py" >"$work/acp/config.yaml"
if command -v npm >/dev/null; then
    npm install --silent --prefix "$work/node" @agentclientprotocol/sdk
    agents="python node"
    printf '  node: {command: %s, args: [%s, %s], description: Node}\n' \
        "$(command -v node)" "$here/acp_agent.mjs" "$work/node" >>"$work/acp/config.yaml"
    # shellcheck disable=SC2086 # Several agents.
    GATEWAY_PORT=0 timeout 300 node acp_editor.mjs "$binaries/pudu" "$work/acp" "$work/node" $agents || failed=1
else
    skip "without npm one of the two other programs of the Agent Client Protocol is not asked"
fi
# shellcheck disable=SC2086 # Several agents.
GATEWAY_PORT=0 timeout 300 "$venv/bin/python" acp_editor.py "$binaries/pudu" "$work/acp" $agents || failed=1
"$venv/bin/python" deerflow_check.py "$binaries/pudu" || failed=1
"$venv/bin/python" openapi_check.py "$binaries/pudu" || failed=1
"$venv/bin/python" routes_check.py "$binaries/pudu" "$binaries/pudu-sim" || failed=1

# The gateway, with its built-in model, as LangGraph's own clients see it.
mkdir "$work/home"
(cd "$work/home" && exec env -u OPENAI_API_KEY -u ANTHROPIC_API_KEY DEER_FLOW_HOME="$work/home" \
    "$binaries/pudu" --bind 127.0.0.1:0 >"$work/gateway" 2>&1) &
gateway=$!
tries=0
until grep -q 'http://127' "$work/gateway"; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || { cat "$work/gateway" >&2; exit 1; }
    sleep 0.1
done
address=$(sed -n 's|.*\(http://127[0-9.:]*\).*|\1|p' "$work/gateway" | head -n 1)
"$venv/bin/python" langgraph_client.py "$address/api" || failed=1
if command -v npm >/dev/null; then
    npm install --silent --prefix "$work/node" @langchain/langgraph-sdk @langchain/langgraph @langchain/core
    node langgraph_client.mjs "$address/api/langgraph" "$work/node" || failed=1
    # Field by field with LangGraph's own server, whose version the list of differences is for.
    npm install --silent --prefix "$work/reference" @langchain/langgraph-api@1.5.1 @langchain/langgraph@1.7.3 \
        @langchain/langgraph-checkpoint@1.2.2 @langchain/langgraph-sdk@1.15.0 @langchain/core@1.4.0 \
        @langchain/openai@1.5.8 typescript@5
    timeout 900 node comparison/compare.mjs "$binaries/pudu" "$binaries/pudu-sim" "$work/reference" || failed=1
    # The version that DeerFlow's lock file pins, and the newest one.
    for sdk in 1.6.0 1.15.0; do
        npm install --silent --prefix "$work/frontend-$sdk" "@langchain/langgraph-sdk@$sdk" @langchain/core@1.4.0 \
            react@19.3.1 react-dom@19.3.1 happy-dom@21.0.4
        timeout 900 node frontend_client.mjs "$binaries/pudu" "$binaries/pudu-sim" "$work/frontend-$sdk" || failed=1
    done
else
    skip "without npm LangGraph's JavaScript client is not asked"
fi
timeout 900 "$venv/bin/python" langgraph_restarts.py "$binaries/pudu" "$binaries/pudu-sim" || failed=1
exit "$failed"
