"""A client of models for programs that tests start: to import one of HTTP would take longer than all else in them."""

POST = """
import json, os, socket
def post(path, body, **headers):
    place, _, folder = os.environ["OPENAI_BASE_URL"].removeprefix("http://").partition("/")
    data = json.dumps(body).encode()
    head = {"host": place, "connection": "close", "content-type": "application/json", "content-length": len(data)}
    lines = ["POST /%s/%s HTTP/1.1" % (folder, path), *map("%s: %s".__mod__, {**head, **headers}.items()), "", ""]
    with socket.create_connection(place.split(":")) as connection:
        connection.sendall("\\r\\n".join(lines).encode() + data)
        with connection.makefile("rb") as reply:
            status = int(reply.readline().split()[1])
            names = [line.lower() for line in iter(reply.readline, b"\\r\\n")]
            if b"transfer-encoding: chunked\\r\\n" not in names:
                return status, json.load(reply)
            text = b""
            while size := int(reply.readline(), 16):
                text += reply.read(size + 2)
            return status, json.loads(text)
"""
"""`post(path, body, header=value...)`: what the server that the environment names answers, as its status and JSON."""
