"""Fetching pages: what is followed, what is refused, and where it ends."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import zlib

import pytest

from croze.web.address import WebError
from croze.web.fetch import Fetcher, Limits
from tests.web.site import HOST, Loopback, answer, packed, redirect, resolver, serving

PRIVATE = (
    "http://127.0.0.1/",
    "http://localhost/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]/",
)


def fetcher(*names: str, **limits) -> Fetcher:
    return Fetcher(resolver=resolver(*names), limits=Limits(**limits))


async def refusal(fetch: Fetcher, url: str) -> WebError:
    with pytest.raises(WebError) as caught:
        await fetch.fetch(url)
    return caught.value


async def test_a_page_comes_with_its_type_charset_and_place():
    async with serving() as site:
        site.pages["/a/b.html?q=1"] = answer("<p>hello</p>", kind="Text/HTML; Charset=ISO-8859-1")
        page = await fetcher().fetch(site.url("/a/b.html?q=1"))
    assert (page.data, page.media_type, page.charset) == (
        b"<p>hello</p>",
        "text/html",
        "iso-8859-1",
    )
    assert (str(page.url), page.name) == (site.url("/a/b.html?q=1"), "b.html")
    assert f"host: {HOST}:{site.port}" in site.requests[-1].lower()


async def test_the_system_resolver_reaches_no_loopback_site():
    from croze.web.address import PublicResolver

    async with serving() as site:
        fetch = Fetcher(resolver=PublicResolver())
        error = await refusal(fetch, f"http://127.0.0.1:{site.port}/")
    assert error.code == "private_address"
    assert site.requests == []


async def test_what_the_croze_of_every_day_uses_reaches_no_loopback_site():
    from croze.web.web import Web

    async with serving() as site:
        with pytest.raises(WebError) as caught:
            await Web().fetch(f"http://127.0.0.1:{site.port}/")
    assert caught.value.code == "private_address"
    assert site.requests == []


@pytest.mark.parametrize("place", PRIVATE)
async def test_a_redirect_to_a_private_address_is_refused(place):
    async with serving() as site:
        site.pages["/"] = redirect(place)
        fetch = Fetcher(
            resolver=Loopback({HOST: [("127.0.0.1",)]}, opened=frozenset({"127.0.0.1"}))
        )
        if "127.0.0.1" in place:  # open by the test's resolver, but another site
            assert (await refusal(fetch, site.url())).code == "redirect_elsewhere"
        else:
            assert (await refusal(fetch, site.url())).code == "private_address"
    assert site.targets == ["/robots.txt", "/"]


async def test_a_redirect_to_a_name_that_means_a_private_address_is_refused():
    names = Loopback({HOST: [("127.0.0.1",)], "inner.test": [("10.0.0.7",)]})
    async with serving() as site:
        site.pages["/"] = redirect("http://inner.test/")
        error = await refusal(Fetcher(resolver=names), site.url())
    assert error.code == "private_address"
    assert "10.0.0.7" in error.message


async def test_a_redirect_on_the_same_site_is_followed():
    async with serving() as site:
        site.pages["/"] = redirect("/next?x=1")
        site.pages["/next?x=1"] = answer("there")
        page = await fetcher().fetch(site.url())
    assert page.data == b"there"
    assert str(page.url) == site.url("/next?x=1")


@pytest.mark.parametrize("host", ["other.test", f"evil{HOST}", f"{HOST}.evil.test", f"a.{HOST}"])
async def test_a_redirect_to_another_site_is_told_and_not_followed(host):
    async with serving() as site:
        site.pages["/"] = redirect(site.url("/x", host=host))
        error = await refusal(fetcher(host), site.url())
    assert (error.code, error.params["url"]) == ("redirect_elsewhere", site.url("/x", host=host))
    assert site.targets == ["/robots.txt", "/"]


async def test_a_redirect_to_another_port_of_the_host_is_told_and_not_followed():
    async with serving() as site, serving() as other:
        site.pages["/"] = redirect(other.url("/x"))
        error = await refusal(fetcher(), site.url())
    assert (error.code, error.params["url"]) == ("redirect_elsewhere", other.url("/x"))
    assert other.requests == []


async def test_redirects_in_a_loop_end():
    async with serving() as site:
        site.pages["/"] = redirect("/")
        error = await refusal(fetcher(redirects=3), site.url())
    assert error.code == "too_many_redirects"
    assert site.targets.count("/") == 4


@pytest.mark.parametrize(
    "place", ["", "file:///etc/passwd", "http://user@site.test/", "http://[::1"]
)
async def test_a_redirect_to_what_is_no_url_is_refused(place):
    async with serving() as site:
        site.pages["/"] = redirect(place)
        assert (await refusal(fetcher(), site.url())).code in ("bad_url", "bad_answer")


async def test_the_connection_goes_to_the_address_that_was_checked():
    """A name server that gives a public-looking answer first and a private one then gains nothing: there
    is no second look-up between the check and the connection."""
    answers = Loopback({HOST: [("127.0.0.1",), ("127.0.0.1",), ("10.9.9.9",)]})
    async with serving() as site:
        site.pages["/"] = answer("first")
        site.pages["/again"] = answer("second")
        fetch = Fetcher(resolver=answers)
        assert (await fetch.fetch(site.url())).data == b"first"
        assert answers.asked == [HOST, HOST]  # robots.txt and the page, once each
        error = await refusal(fetch, site.url("/again"))
    assert error.code == "private_address"
    assert site.targets == ["/robots.txt", "/"]


async def test_a_name_that_also_means_a_private_address_is_not_reached():
    mixed = Loopback({HOST: [("127.0.0.1", "192.168.0.1")]})
    async with serving() as site:
        assert (await refusal(Fetcher(resolver=mixed), site.url())).code == "private_address"
    assert site.requests == []


async def test_robots_txt_is_kept_to_and_asked_for_once():
    async with serving() as site:
        site.pages["/robots.txt"] = answer("User-agent: *\nDisallow: /private\n", kind="text/plain")
        site.pages["/open"] = answer("open")
        site.pages["/private/x"] = answer("private")
        site.pages["/to"] = redirect("/private/x")
        fetch = fetcher()
        assert (await refusal(fetch, site.url("/private/x"))).code == "robots"
        assert (await fetch.fetch(site.url("/open"))).data == b"open"
        assert (await refusal(fetch, site.url("/to"))).code == "robots"
    assert site.targets == ["/robots.txt", "/open", "/to"]


async def test_a_site_whose_robots_txt_fails_is_left_alone():
    async with serving() as site:
        site.pages["/robots.txt"] = answer("", status="503 Service Unavailable")
        site.pages["/"] = answer("x")
        assert (await refusal(fetcher(), site.url())).code == "robots"
    assert site.targets == ["/robots.txt"]


async def test_an_endless_robots_txt_forbids_everything():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"# more\n" * 10_000)
            await writer.drain()

    async with serving() as site:
        site.pages["/robots.txt"] = endless
        assert (await refusal(fetcher(), site.url())).code == "robots"


async def test_a_status_that_is_no_success_is_told():
    async with serving() as site:
        error = await refusal(fetcher(), site.url("/none"))
    assert (error.code, error.params["status"]) == ("http_status", 404)


async def test_an_endless_body_is_cut_off():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n")
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with serving() as site:
        site.pages["/"] = endless
        error = await refusal(fetcher(bytes=1 << 20), site.url())
    assert error.code == "too_large"


async def test_a_packed_body_is_unpacked_no_further_than_the_limit():
    bomb = packed(b"\0" * (64 << 20))
    assert len(bomb) < 100_000
    async with serving() as site:
        site.pages["/"] = bomb
        site.pages["/small"] = packed(b"small")
        fetch = fetcher(bytes=1 << 20)
        assert (await refusal(fetch, site.url())).code == "too_large"
        assert (await fetch.fetch(site.url("/small"))).data == b"small"


@pytest.mark.parametrize(
    ("coding", "data"),
    [("gzip", b"no gzip"), ("gzip", zlib.compress(b"x")), ("br", b"x"), ("gzip, gzip", b"x"), ("gzip", b"\x1f\x8b\x08")],
)  # fmt: skip
async def test_a_body_packed_in_another_way_or_damaged_is_refused(coding, data):
    async with serving() as site:
        site.pages["/"] = answer(data, headers={"content-encoding": coding})
        assert (await refusal(fetcher(), site.url())).code == "bad_answer"


async def test_a_server_that_trickles_is_given_up():
    async def slow(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"x-more: 1\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with serving() as site:
        site.pages["/"] = slow
        error = await refusal(fetcher(seconds=0.5), site.url())
    assert error.code in ("too_slow", "bad_answer")


async def test_a_server_that_never_answers_is_given_up():
    async def silent(writer):
        await writer.wait_closed()

    async with serving() as site:
        site.pages["/"] = silent
        task = asyncio.create_task(refusal(fetcher(seconds=0.5), site.url()))
        assert (await asyncio.wait_for(task, 60)).code == "too_slow"


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000, b"\x16\x03\x01\x02\x00", b"\0" * 1_000,
    ],
)  # fmt: skip
async def test_an_answer_against_the_protocol_is_told(raw):
    async with serving() as site:
        site.pages["/"] = raw
        assert (await refusal(fetcher(), site.url())).code in ("bad_answer", "not_reached")


async def test_an_answer_in_pieces_of_one_byte_is_read():
    async def pieces(writer):
        whole = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n"
        whole += b"".join(b"1\r\n%c\r\n" % each for each in b"hello") + b"0\r\n\r\n"
        for at in range(len(whole)):
            writer.write(whole[at : at + 1])
            await writer.drain()

    async with serving() as site:
        site.pages["/"] = pieces
        assert (await fetcher().fetch(site.url())).data == b"hello"


async def test_a_port_where_nobody_listens_is_told():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        error = await refusal(fetcher(), f"http://{HOST}:{unused.getsockname()[1]}/")
    assert error.code == "not_reached"


async def test_a_name_that_is_unknown_is_told():
    assert (await refusal(fetcher(), "http://nowhere.test/")).code == "no_address"


async def test_a_cancelled_fetch_lets_go_of_its_connection():
    begun = asyncio.Event()

    async def silent(writer):
        begun.set()
        await writer.wait_closed()

    async with serving() as site:
        site.pages["/"] = silent
        task = asyncio.create_task(fetcher().fetch(site.url()))
        await asyncio.wait_for(begun.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        site.pages["/"] = answer("fine")
        assert (await fetcher().fetch(site.url())).data == b"fine"


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the certificate")
    path = tmp_path / "site.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *(
                "-nodes",
                "-days",
                "2",
                "-subj",
                f"/CN={HOST}",
                "-addext",
                f"subjectAltName=DNS:{HOST}",
            ),
            *("-keyout", str(path), "-out", str(tmp_path / "cert.pem")),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    path.write_text(path.read_text() + (tmp_path / "cert.pem").read_text())
    return path


async def test_tls_is_verified_for_the_name_though_the_address_is_connected_to(certificate):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)

    def trusting() -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(certificate))

    async with serving(tls=server) as site:
        site.pages["/"] = answer("secret")
        good = Fetcher(resolver=resolver("other.test"), tls=trusting)
        assert (await good.fetch(site.url(scheme="https"))).data == b"secret"
        wrong = await refusal(good, site.url(scheme="https", host="other.test"))
        untrusted = await refusal(Fetcher(resolver=resolver()), site.url(scheme="https"))
    assert (wrong.code, untrusted.code) == ("tls", "tls")
    assert len(site.requests) == 2
