"""A small MCP server for tests: the first argument is its mode, the second a folder for what it did."""

import json
import os
import signal
import subprocess
import sys

MODE, FOLDER = sys.argv[1], sys.argv[2]


def note(file, line):
    with open(os.path.join(FOLDER, file), "a") as out:
        out.write(f"{line}\n")


def lines(file):
    path = os.path.join(FOLDER, file)
    return open(path).read().splitlines() if os.path.exists(path) else []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def text(value, **more):
    return {"content": [{"type": "text", "text": str(value)}], **more}


def tool(name, **more):
    return {"name": name, "description": name, "inputSchema": {"type": "object"}, **more}


def ask():
    """Asks the client for all that it does not offer, and returns the codes of its errors."""
    codes = []
    for number, method in enumerate(["roots/list", "sampling/createMessage", "elicitation/create", "custom/ask"]):
        params = {"messages": [], "maxTokens": 1, "message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        send({"id": f"ask-{number}", "method": method, "params": params})
        codes.append(receive().get("error", {}).get("code"))
    send({"id": "ping", "method": "ping"})
    return codes + [receive().get("result")]


def call(name, arguments, number):
    note("calls", name)
    if name == "echo":
        return text(arguments.get("text", ""))
    if name == "pid":
        return text(os.getpid())
    if name == "environment":
        return text(json.dumps({"folder": os.getcwd(), **os.environ}))
    if name in ("die", "die_reading", "die_idempotent"):
        if len(lines("calls")) == 1 or arguments.get("always"):
            print("the disk is on fire", file=sys.stderr, flush=True)
            os._exit(3)
        return text("survived")
    if name == "grandchild":
        child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
        return text(child.pid)
    if name == "deaf":
        while True:
            signal.pause()
    if name == "slow":
        return None
    if name == "cancelled":
        return text(len(lines("cancelled")))
    if name == "is_error":
        return text("no such city", isError=True)
    if name == "refuse":
        send({"id": number, "error": {"code": arguments["code"], "message": "I refuse", "data": {"at": 1}}})
        return None
    if name == "rubbish":
        print("Now I think about it …\n{\"level\": \"info\"}\n[1, 2]\n{}\n\n" + "[" * 500, flush=True)
        return text("an answer")
    if name == "flood":
        for _ in range(200):
            sys.stderr.write("x" * 65_536 + "\n")
        sys.stderr.write("the end of the flood\n")
        sys.stderr.flush()
        return text("afloat")
    if name == "long_line":
        sys.stdout.write("x" * (17 * 1024 * 1024))
        sys.stdout.flush()
        return None
    if name == "unreadable":
        send({"id": number})
        return None
    if name == "no_result":
        send({"id": number, "result": 5})
        return None
    if name == "hologram":
        return {"content": [{"type": "hologram"}, {"type": "text", "text": "beside"}]}
    if name == "ask":
        return text(json.dumps(ask()))
    raise ValueError(name)


READS = {"annotations": {"readOnlyHint": True}}
TOOLS = [
    tool(name)
    for name in "echo pid environment die grandchild deaf slow cancelled is_error refuse rubbish flood long_line unreadable "
    "no_result hologram ask".split()
] + [tool("die_reading", **READS), tool("die_idempotent", annotations={"idempotentHint": True})]


def page(cursor):
    if MODE == "pages":
        number = int(cursor or 0)
        more = {"nextCursor": str(number + 1)} if number < 2 else {"nextCursor": ""}
        return {"tools": [tool(f"tool_{number}")], **more}
    if MODE == "endless":
        return {"tools": [], "nextCursor": "again"}
    if MODE == "many":
        return {"tools": [tool(f"tool_{number}") for number in range(200)]}
    if MODE == "twice":
        return {"tools": [tool("same"), tool("same")]}
    if MODE == "no_object":
        return {"tools": [tool("good"), {**tool("bad"), "inputSchema": "all"}]}
    if MODE == "bad_schema":
        return {"tools": [{**tool("bad"), "inputSchema": {"properties": {"a": {"type": "nonsense"}}}}]}
    if MODE == "no_list":
        return {"things": []}
    return {"tools": TOOLS}


def serve():
    while True:
        message = receive()
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            note("capabilities", json.dumps(params["capabilities"]))
            info = {"name": "fake", "version": "1"}
            version = params["protocolVersion"]
            send({"id": number, "result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}})
        elif method == "tools/list" and MODE == "list_refused":
            send({"id": number, "error": {"code": -32601, "message": "no tools here"}})
        elif method == "tools/list":
            send({"id": number, "result": page(params.get("cursor"))})
            send({"method": "notifications/tools/list_changed"})
        elif method == "tools/call":
            result = call(params["name"], params.get("arguments") or {}, number)
            if result is not None:
                send({"id": number, "result": result})
        elif method == "notifications/cancelled":
            note("cancelled", params["requestId"])


note("starts", os.getpid())
if MODE == "silent":
    print("Listening, but not to you", flush=True)
    while True:
        receive()
if MODE == "crash":
    print("\x1b[31mno database\x1b[0m", file=sys.stderr, flush=True)
    sys.exit(3)
if MODE == "shy":
    print("please configure me", flush=True)
    sys.exit(1)
if MODE == "endless_line":
    while True:
        sys.stdout.write("x" * 65_536)
if MODE == "init_refused":
    send({"id": receive()["id"], "error": {"code": -32602, "message": "unknown version"}})
if MODE == "init_nonsense":
    send({"id": receive()["id"], "result": {"hello": "world"}})
if MODE == "stubborn":
    # Closed input ends it no more than a polite signal.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        serve()
    except SystemExit:
        note("closed", os.getpid())
        while True:
            signal.pause()
serve()
