"""Direct connections and proxied ones: keeping, TLS, compression, and which of them is taken."""

import asyncio
import gzip
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from croze.llm.direct import DirectTransport
from croze.llm.http import Broken, Timeouts, uses_proxy
from croze.llm.openai import OpenAIModel
from croze.types.errors import ModelError
from tests.llm.samples import KEY, Whole, collect, model_info, prompt
from tests.model_server import ModelServer, Reply, read_request


async def ask(url: str) -> Whole:
    model = OpenAIModel(model_info(url), api_key=KEY)
    try:
        return await collect(model.stream(model.encode(prompt())))
    finally:
        await model.aclose()


async def answered_by(raw: bytes, *, close: bool = True) -> bytes:
    """The body that the transport reads where the server answers with `raw`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(raw)
        await writer.drain()
        if not close:
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    transport = DirectTransport(url, 5.0)
    try:
        answer = await transport.post(f"{url}/x?y=1", {"content-type": "text/plain"}, b"{}")
        body = b"".join([block async for block in answer.blocks()])
        await answer.aclose()
        return body
    finally:
        await transport.aclose()
        server.close()
        await server.wait_closed()


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    async with ModelServer([Reply(text="x", fault="close")], repeat=True) as server:
        model = OpenAIModel(model_info(server.url), api_key=KEY)
        for _ in range(4):
            assert (await collect(model.stream(model.encode(prompt())))).finish == "stop"
        await model.aclose()
    assert len(server.requests) == server.connections == 4


async def test_a_kept_connection_that_dies_with_the_request_is_tried_anew_once() -> None:
    async with ModelServer(
        [Reply(text="a"), Reply(fault="refuse"), Reply(text="b"), Reply(fault="refuse")]
    ) as server:
        model = OpenAIModel(model_info(server.url), api_key=KEY)
        assert (await collect(model.stream(model.encode(prompt())))).text == "a"
        assert (await collect(model.stream(model.encode(prompt())))).text == "b"
        with pytest.raises(ModelError) as caught:
            await ask(server.url)
        await model.aclose()
    assert caught.value.code == "reset"
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nhello",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello", mtime=0),
    ],
)
async def test_bodies_of_every_framing_are_read(raw: bytes) -> None:
    assert await answered_by(raw) == b"hello"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "reset"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "reset"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "reset"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nplain", "reset"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nhello", "url"),
    ],
)
async def test_answers_that_are_not_http_are_broken_ones(raw: bytes, kind: str) -> None:
    with pytest.raises(Broken) as caught:
        await answered_by(raw)
    assert caught.value.kind == kind


async def test_a_body_of_many_megabytes_arrives() -> None:
    async with ModelServer([Reply(text="x")]) as server:
        model = OpenAIModel(model_info(server.url), api_key=KEY)
        body = model.encode(prompt(system="é" * 4_000_000))
        assert (await collect(model.stream(body))).text == "x"
        await model.aclose()
    assert server.requests[0].body == body


async def test_a_name_that_does_not_resolve_can_not_be_reached() -> None:
    with pytest.raises(ModelError) as caught:
        await ask("http://no-such-host.invalid/v1")
    assert (caught.value.code, caught.value.retryable) == ("connect", True)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1 and its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=test"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", folder / "key.pem", "-out", folder / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return both


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_a_certificate_of_a_known_authority_is_accepted(
    certificate: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with ModelServer([Reply(text="x" * 100)], repeat=True, tls=tls) as server:
        model = OpenAIModel(model_info(server.url), api_key=KEY)
        for _ in range(3):
            assert (await collect(model.stream(model.encode(prompt())))).text == "x" * 100
        await model.aclose()
    assert server.connections == 1


async def test_a_certificate_that_can_not_be_verified_is_refused_before_the_key_is_sent(
    tls: ssl.SSLContext,
) -> None:
    async with ModelServer([Reply(text="x")], tls=tls) as server:
        with pytest.raises(ModelError) as caught:
            await ask(server.url)
    assert (caught.value.code, caught.value.retryable) == ("tls", False)
    assert "SSL_CERT_FILE" in caught.value.hint
    assert server.requests == []


async def test_cancelling_closes_a_tls_connection_too(
    certificate: Path, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with ModelServer([Reply(text="x" * 100, fault="stall")], tls=tls) as server:
        task = asyncio.create_task(ask(server.url))
        await asyncio.wait_for(server.arrived.wait(), 5)
        task.cancel()
        await asyncio.wait_for(server.gone.wait(), 5)
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_proxy_of_the_environment_carries_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with ModelServer([Reply(text="through the proxy")]) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        assert (await ask("http://model.invalid/v1")).text == "through the proxy"
    assert server.requests[0].headers["host"] == "model.invalid"


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("https://api.example/v1", {}, False),
        ("https://api.example/v1", {"HTTPS_PROXY": "http://p:1"}, True),
        ("https://api.example/v1", {"all_proxy": "http://p:1"}, True),
        ("https://api.example/v1", {"HTTP_PROXY": "http://p:1"}, False),
        ("http://127.0.0.1:1/v1", {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "x"}, False),
    ],
)
def test_a_proxy_is_looked_for_in_the_environment_only(
    url: str, env: dict[str, str], expected: bool
) -> None:
    assert uses_proxy(url, env) is expected


def test_a_request_without_a_proxy_loads_no_httpx2() -> None:
    code = (
        "import asyncio, sys\n"
        "from croze.llm.open import open_model\n"
        "from tests.llm.samples import collect, model_info, prompt\n"
        "from tests.model_server import ModelServer, Reply\n"
        "async def main():\n"
        "    async with ModelServer([Reply(text='x')]) as server:\n"
        "        model = open_model(model_info(server.url), api_key='k', max_retries=0)\n"
        "        assert (await collect(model.stream(model.encode(prompt())))).text == 'x'\n"
        "        await model.aclose()\n"
        "asyncio.run(main())\n"
        "print(sorted({'httpx2', 'httpcore2', 'anyio', 'pydantic_ai'} & sys.modules.keys()))\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        env={"PYTHONPATH": f"{root / 'src'}:{root}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


async def test_the_limit_to_connect_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*args: object, **rest: object) -> object:
        return await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "open_connection", never)
    limits = Timeouts(connect=0.05, first_byte=60.0, idle=60.0)
    model = OpenAIModel(model_info(), api_key=KEY, timeouts=limits)
    with pytest.raises(ModelError) as caught:
        await collect(model.stream(model.encode(prompt())))
    assert (caught.value.code, caught.value.retryable) == ("connect_timeout", True)
