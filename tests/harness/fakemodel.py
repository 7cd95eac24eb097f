#!/usr/bin/env python3
"""fakemodel: a scripted model server on loopback, to drive real coding agents.

    fakemodel.py --script turns.json --log requests.jsonl

It prints one line, `listening 127.0.0.1:PORT`, and serves until killed. It speaks
Anthropic Messages (POST .../v1/messages and .../count_tokens), streamed or whole as
the request asks. Anything else is answered `200 {}` and logged, so that the log
shows every call an agent makes.

THE SCRIPT is JSON: a list of turns, or {"lanes": [{"name", "when", "turns"}]}.
A turn is one of

    {"say": "text"}
    {"call": "Bash", "input": {"command": "ls"}}
    {"calls": [{"call": ..., "input": ...}, ...]}       several calls in one turn

In `input`, "{{re:PATTERN}}" becomes group 1 (or the whole) of the last match of
PATTERN in the tool results that this request carries.

Each request that offers tools takes the next turn of the first lane whose `when`
text is in the request's first user message (a lane without `when` takes any); so a
subagent gets a lane of its own through a word in its prompt. Past the last turn the
model says "script finished". A request that offers no tools takes no turn.

THE LOG has one JSON object a line, written before the answer is sent:
    api, lane, turn, tools (names), tool_results [{id, text, error}] (those after the
    model's latest message), first_user, system, path
"""
import argparse
import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Script:
    """The turns still to come, by lane."""

    def __init__(self, data):
        lanes = data["lanes"] if isinstance(data, dict) else [{"turns": data}]
        self.lanes = [{"name": lane.get("name", "main"), "when": lane.get("when"), "turns": lane["turns"], "next": 0}
                      for lane in lanes]
        self.lock = threading.Lock()

    def take(self, view):
        """The lane's name, the turn's number and the turn for this request."""
        if not view["tools"]:
            return "side", None, {"say": "ok"}
        with self.lock:
            for lane in self.lanes:
                if lane["when"] is None or lane["when"] in view["first_user"]:
                    number = lane["next"]
                    lane["next"] += 1
                    if number < len(lane["turns"]):
                        return lane["name"], number, lane["turns"][number]
                    return lane["name"], number, {"say": "script finished"}
        return "none", None, {"say": "no lane for this request"}


def fill(value, results):
    """Replace {{re:PATTERN}} in every string of value."""
    if isinstance(value, dict):
        return {k: fill(v, results) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, results) for v in value]
    if not isinstance(value, str):
        return value

    def last_match(m):
        found = list(re.finditer(m.group(1), results))
        if not found:
            return m.group(0)
        return found[-1].group(1) if found[-1].groups() else found[-1].group(0)

    return re.sub(r"\{\{re:(.*?)\}\}", last_match, value)


def flat(content):
    """The text in a message's content, whatever its shape."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (flat(c) for c in content)))
    for key in ("text", "content"):
        if key in content:
            return flat(content[key])
    return json.dumps(content)


def view_of(body):
    """What the script and the log need of a request."""
    messages, results = body.get("messages", []), []
    for message in messages:
        if message["role"] == "assistant":
            results = []
        elif isinstance(message.get("content"), list):
            results += [{"id": b.get("tool_use_id"), "text": flat(b.get("content")), "error": bool(b.get("is_error"))}
                        for b in message["content"] if b.get("type") == "tool_result"]
    return {
        "first_user": next((flat(m["content"]) for m in messages if m["role"] == "user"), ""),
        "all_users": "\n".join(flat(m["content"]) for m in messages if m["role"] == "user"),
        # What hooks add at the start of a session stands in messages of the role system.
        "system": "\n".join([flat(body.get("system"))] + [flat(m["content"]) for m in messages if m["role"] == "system"]),
        "tools": [t["name"] for t in body.get("tools") or [] if "name" in t],
        "results": results,
    }


def sse(event, data):
    return "event: %s\ndata: %s\n\n" % (event, json.dumps(data))


def answer_of(body, text, calls, uid):
    """The answer in the API's own form."""
    content = ([{"type": "text", "text": text}] if text else []) + [
        {"type": "tool_use", "id": "toolu_%s_%d" % (uid, i), "name": name, "input": args}
        for i, (name, args) in enumerate(calls)]
    reason = "tool_use" if calls else "end_turn"
    usage = {"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": "msg_" + uid, "type": "message", "role": "assistant", "model": body.get("model"),
               "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}
    if not body.get("stream"):
        return json.dumps(message)
    out = [sse("message_start", {"type": "message_start", "message": dict(message, content=[], stop_reason=None)})]
    for i, block in enumerate(content):
        if block["type"] == "text":
            start, delta = dict(block, text=""), {"type": "text_delta", "text": block["text"]}
        else:
            start = dict(block, input={})
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        out.append(sse("content_block_start", {"type": "content_block_start", "index": i, "content_block": start}))
        out.append(sse("content_block_delta", {"type": "content_block_delta", "index": i, "delta": delta}))
        out.append(sse("content_block_stop", {"type": "content_block_stop", "index": i}))
    out.append(sse("message_delta", {"type": "message_delta", "usage": usage,
                                     "delta": {"stop_reason": reason, "stop_sequence": None}}))
    out.append(sse("message_stop", {"type": "message_stop"}))
    return "".join(out)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):     # an agent may hang up at any time
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script = log = None
    lock = threading.Lock()
    count = 0

    def log_message(self, *args):
        pass

    def write_log(self, entry):
        with Handler.lock:
            Handler.count += 1
            Handler.log.write(json.dumps(entry) + "\n")
            Handler.log.flush()
            return Handler.count

    def reply(self, text, kind="application/json"):
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("request-id", "req_fake")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_any(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if self.command != "POST" or not path.endswith("/v1/messages"):
            self.write_log({"api": None, "path": self.path})
            return self.reply('{"input_tokens": 10}' if path.endswith("/count_tokens") else "{}")
        view = view_of(body)
        lane, number, turn = self.script.take(view)
        calls = turn.get("calls") or ([turn] if "call" in turn else [])
        results = "\n".join(r["text"] for r in view["results"])
        settled = [(call["call"], fill(call.get("input", {}), results)) for call in calls]
        uid = "%d_%d" % (os.getpid(), self.write_log(dict(
            api="anthropic", path=self.path, lane=lane, turn=number, tools=view["tools"],
            tool_results=view["results"], first_user=view["first_user"], all_users=view["all_users"],
            system=view["system"])))
        kind = "text/event-stream" if body.get("stream") else "application/json"
        self.reply(answer_of(body, turn.get("say", ""), settled, uid), kind)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = handle_any


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--script", required=True)
    parser.add_argument("--log", required=True)
    args = parser.parse_args()
    with open(args.script) as f:
        Handler.script = Script(json.load(f))
    Handler.log = open(args.log, "a")
    server = Server(("127.0.0.1", 0), Handler)
    print("listening 127.0.0.1:%d" % server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
