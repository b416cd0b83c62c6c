"""The reference servers of the protocol's makers: over streams and over HTTP, in both protocols of ours."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from croze.mcp import offers
from croze.mcp.config import ServerSpec
from croze.mcp.server import Server
from tests.mcp.conftest import Person, Workshop, node, reference

IMAGE = b"\x89PNG"


@pytest.fixture(params=["stdio", "http"])
async def everything(request: pytest.FixtureRequest, workshop: Workshop) -> AsyncIterator[Server]:
    """`server-everything`, over either transport."""
    if request.param == "stdio":
        command, *args = reference("everything")
        spec = ServerSpec(name="everything", command=command, args=tuple(args))
        yield workshop.servers(spec).get("everything")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = await asyncio.create_subprocess_exec(
        *reference("everything", "streamableHttp"),
        env={**os.environ, "PORT": str(port), "PATH": f"{Path(node()).parent}:/bin:/usr/bin"},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        await _answers(url)
        server = workshop.servers(ServerSpec(name="everything", url=url)).get("everything")
        yield server
        await server.close()
    finally:
        program.kill()
        await program.wait()


async def _answers(url: str) -> None:
    """Wait until a server listens."""
    async with asyncio.timeout(20), httpx2.AsyncClient() as client:
        while True:
            try:
                await client.get(url)
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_its_tools_answer_with_text_images_and_values(everything: Server) -> None:
    listing = await everything.listing()
    assert {"echo", "get-sum", "get-tiny-image"} <= {tool.name for tool in listing.tools}
    assert not any(tool.doubts or tool.unusable for tool in listing.tools)
    person = Person()
    assert (await everything.call("echo", {"message": "hi"}, person)).text == "Echo: hi"
    assert "3 and 4 is 7" in (await everything.call("get-sum", {"a": 3, "b": 4}, person)).text
    [image] = (await everything.call("get-tiny-image", {}, person)).images
    assert image.startswith(IMAGE)
    values = await everything.call("get-structured-content", {"location": "Chicago"}, person)
    assert values.data["conditions"]
    linked = await everything.call("get-resource-links", {"count": 2}, person)
    assert linked.text.count("[resource demo://") == 2


async def test_it_shows_progress(everything: Server) -> None:
    person = Person()
    arguments = {"duration": 0.3, "steps": 3}
    answer = await everything.call("trigger-long-running-operation", arguments, person)
    assert "completed" in answer.text
    assert [line.split()[0] for line in person.shown if line.startswith("[")] == [
        "[1/3]",
        "[2/3]",
        "[3/3]",
    ]


async def test_its_resources_are_listed_and_read(everything: Server) -> None:
    listed = await offers.resources(everything)
    assert any("demo://resource/static/document/features.md" in line for line in listed)
    assert any("(template)" in line for line in listed)
    text = await offers.read(everything, "demo://resource/dynamic/text/1", Person())
    assert "Resource 1" in text.text
    blob = await offers.read(everything, "demo://resource/dynamic/blob/1", Person())
    assert (blob.text, len(blob.left)) == ("", 1)


async def test_its_prompts_are_listed_and_filled_in(everything: Server) -> None:
    assert any(
        line.startswith("- args-prompt(city, state?)") for line in await offers.prompts(everything)
    )
    answer = await offers.prompt(everything, "args-prompt", {"city": "Ulm"}, Person())
    assert answer.text.startswith("user: ")
    assert "Ulm" in answer.text


async def test_it_asks_the_user_and_knows_the_workspace(everything: Server) -> None:
    roots = await everything.call("get-roots-list", {}, Person())
    assert "project" in roots.text
    person = Person(answers=["decline"])
    answer = await everything.call("trigger-elicitation-request", {}, person)
    assert "decline" in answer.text.lower()
    assert person.asked


async def test_the_filesystem_server_keeps_to_its_folder(workshop: Workshop) -> None:
    (workshop.root / "a.txt").write_text("one\ntwo\n")
    command, *args = reference("filesystem", str(workshop.root))
    spec = ServerSpec(name="files", command=command, args=tuple(args))
    server = workshop.servers(spec).get("files")
    assert len((await server.listing()).tools) == 14
    read = await server.call("read_text_file", {"path": str(workshop.root / "a.txt")}, Person())
    assert read.text == "one\ntwo\n"
    outside = await server.call("read_text_file", {"path": "/etc/passwd"}, Person())
    assert outside.failed
