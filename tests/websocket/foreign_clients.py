"""Drives the echo server with WebSocket clients that others wrote: websockets or aiohttp.

    foreign_clients.py websockets|aiohttp PATH_OF_WS_ECHO_SERVER

Each case runs with compression on and off. Exits with 1 at the first difference.
"""
import asyncio
import os
import subprocess
import sys

SIZES = [0, 1, 125, 126, 65535, 65536, 1 << 20]
PATIENCE_S = 60


def payloads():
    for size in SIZES:
        yield ("sample text \u00e9\u20ac\U0001f600 " * (size // 16 + 1))[:size]
        yield os.urandom(size)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


async def with_websockets(url, compression):
    import websockets

    async def connect():
        return await websockets.connect(url, compression="deflate" if compression else None, max_size=None)

    socket = await connect()
    agreed = any(e.name == "permessage-deflate" for e in socket.extensions)
    check(agreed == compression, "compression was negotiated differently")
    for payload in payloads():
        await socket.send(payload)
        check(await socket.recv() == payload, f"echo of {len(payload)}")
    await socket.send(["frag", "men", "", "ted \u20ac" * 1000])
    check(await socket.recv() == "fragmen" + "ted \u20ac" * 1000, "fragments")
    await socket.send([b"\x00" * 70000, b"\xff"])
    check(await socket.recv() == b"\x00" * 70000 + b"\xff", "binary fragments")
    pong = await socket.ping("are you there")
    await asyncio.wait_for(pong, PATIENCE_S)
    for i in range(1000):
        await socket.send(str(i))
    for i in range(1000):
        check(await socket.recv() == str(i), "order")
    await socket.close(4000, "bye")
    check(socket.close_code == 4000, f"closed with {socket.close_code}")

    for code in (1000, 1001, 1011, 1013, 3000, 4999):
        socket = await connect()
        await socket.send(f"close {code}")
        try:
            await socket.recv()
            check(False, "the server was to close")
        except websockets.ConnectionClosed as closed:
            check(closed.rcvd.code == code and closed.rcvd.reason == "as asked", f"{closed.rcvd}")


async def with_aiohttp(url, compression):
    import aiohttp

    async with aiohttp.ClientSession() as session:
        def connect():
            return session.ws_connect(url, compress=15 if compression else 0, max_msg_size=0, autoping=False)

        async with connect() as socket:
            check(bool(socket.compress) == compression, "compression was negotiated differently")
            for payload in payloads():
                if isinstance(payload, str):
                    await socket.send_str(payload)
                    message = await socket.receive()
                    check(message.type == aiohttp.WSMsgType.TEXT, "type of a text")
                else:
                    await socket.send_bytes(payload)
                    message = await socket.receive()
                    check(message.type == aiohttp.WSMsgType.BINARY, "type of a binary")
                check(message.data == payload, f"echo of {len(payload)}")
            await socket.ping(b"are you there")
            message = await socket.receive()
            check(message.type == aiohttp.WSMsgType.PONG and message.data == b"are you there", "pong")
            for i in range(1000):
                await socket.send_str(str(i))
            for i in range(1000):
                check((await socket.receive()).data == str(i), "order")
            await socket.close(code=4000, message=b"bye")
            check(socket.close_code == 4000, f"closed with {socket.close_code}")
        for code in (1000, 1001, 1011, 1013, 3000, 4999):
            async with connect() as socket:
                await socket.send_str(f"close {code}")
                message = await socket.receive()
                check(message.type == aiohttp.WSMsgType.CLOSE and message.data == code, f"{message}")
                check(message.extra == "as asked", f"{message}")


def main():
    library, server_path = sys.argv[1:]
    case = {"websockets": with_websockets, "aiohttp": with_aiohttp}[library]
    server = subprocess.Popen([server_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        url = f"ws://127.0.0.1:{int(server.stdout.readline())}/"
        for compression in (False, True):
            asyncio.run(asyncio.wait_for(case(url, compression), PATIENCE_S))
            print(f"{library}, compression {'on' if compression else 'off'}: as expected")
    finally:
        server.stdin.close()
        server.wait(PATIENCE_S)
    check(server.returncode == 0, f"the server ended with {server.returncode}")


if __name__ == "__main__":
    main()
