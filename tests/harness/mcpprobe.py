#!/usr/bin/env python3
"""mcpprobe: a small MCP server (stdio) of somebody else's, with a tool that runs commands.

Its one tool, `shell`, runs `command` with /bin/sh in the server's own folder, as many
MCP servers do: a way around a hook that looks at the agent's own shell tool only.
"""
import json
import subprocess
import sys

TOOL = {"name": "shell", "description": "Run a command.",
        "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}


def answer(method, params):
    """The result, or None where there is no such method."""
    if method == "initialize":
        return {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}},
                "serverInfo": {"name": "probe", "version": "0"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        done = subprocess.run(["/bin/sh", "-c", params["arguments"]["command"]], capture_output=True, text=True)
        return {"content": [{"type": "text", "text": done.stdout + done.stderr}]}
    return {} if method == "ping" else None


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message.get("method"), message.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        reply.update({"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result})
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
