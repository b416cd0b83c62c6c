"""Which URLs and addresses are reached, and which are not, however they are spelt."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.web.address import PublicResolver, WebError, checked, ipv4, is_public, parse_url


class Fixed:
    """A name server that gives these addresses; what may be reached is for the real resolver to say."""

    def __init__(self, *addresses: str) -> None:
        self.found = [ipaddress.ip_address(each) for each in addresses]
        self.allows = PublicResolver().allows

    async def addresses(self, host: str, port: int):
        return self.found


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
        "2002:7f00:1::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1",
    ],
)  # fmt: skip
def test_an_address_of_this_machine_or_its_networks_is_not_public(address):
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8",
     "64:ff9b::8.8.8.8"],
)  # fmt: skip
def test_an_address_of_the_internet_is_public(address):
    assert is_public(ipaddress.ip_address(address))


@given(st.integers(0, 2**32 - 1))
def test_an_address_is_as_public_mapped_into_ipv6_as_it_is_by_itself(number):
    plain = ipaddress.IPv4Address(number)
    mapped = ipaddress.IPv6Address(f"::ffff:{plain}")
    translated = ipaddress.IPv6Address(f"64:ff9b::{plain}")
    assert is_public(mapped) == is_public(translated) == is_public(plain)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001",
        "127.0.0.1.", "0", "0x0", "0.0.0.0", "169.254.169.254", "2852039166", "0xa9fea9fe", "[::1]", "[::]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[fe80::1]", "10.1", "192.168.257",
        "１２７.0.0.1", "127。0。0。1", "⑫7.0.0.1",
    ],
)  # fmt: skip
async def test_a_private_address_is_refused_in_every_spelling(host):
    with pytest.raises(WebError) as caught:
        await checked(parse_url(f"http://{host}/"), PublicResolver())
    assert caught.value.code == "private_address"


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost.", "LOCALHOST", "a.localhost", "a.localhost.", "printer.local", "db.internal",
     "wiki.corp", "nas.lan", "router.home", "intranet", "x.onion"],
)  # fmt: skip
def test_a_name_of_this_machine_or_network_is_refused_unresolved(host):
    with pytest.raises(WebError) as caught:
        parse_url(f"https://{host}/")
    assert caught.value.code == "private_address"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "javascript:alert(1)",
        "data:text/html,x", "//example.org/", "example.org", "", "http://", "http:///path", "https://user@example.org/",
        "https://user:pass@example.org/", "https://example.org@evil.org/", "https://@example.org/",
        "https://evil.org\\@example.org/", "https://example.org\0.evil.org/", "https://exa mple.org/",
        "https://example.org/\r\nx: y", "https://exam\tple.org/", "https://example.org:0/", "https://example.org:99999/",
        "https://example.org:abc/", "https://evil%2eorg/", "https://[::1/", "https://[::1%25eth0]/", "https://a..b/",
        "https://-a.org/", "https://a-.org/", "https://exa$mple.org/", "https://1.2.3.4.5/", "https://256.1.1.1/",
        "https://0x/..", "https://09.1.1.1/", "http://a" + "b" * 64 + ".org/", "http://x.org/" + "y" * 9_000,
        "https://\ud800.org/",
    ],
)  # fmt: skip
async def test_what_is_no_plain_url_of_the_web_is_refused(url):
    with pytest.raises(WebError):
        await checked(parse_url(url), Fixed("1.1.1.1"))


@pytest.mark.parametrize(
    ("url", "host", "said"),
    [
        ("HTTPS://Example.ORG", "example.org", "https://example.org/"),
        ("https://example.org:443/a?b=c#d", "example.org", "https://example.org/a?b=c"),
        ("http://example.org:8080/a b", None, None),
        ("http://example.org.:8080/", "example.org", "http://example.org:8080/"),
        (
            "https://bücher.example/ä",
            "xn--bcher-kva.example",
            "https://xn--bcher-kva.example/%C3%A4",
        ),
        ("https://evilok.com/", "evilok.com", "https://evilok.com/"),
        ("https://[2606:4700::1111]:8443/", "2606:4700::1111", "https://[2606:4700::1111]:8443/"),
        ("https://ok.com.evil.org/%2e%2e/", "ok.com.evil.org", "https://ok.com.evil.org/%2e%2e/"),
    ],
)
def test_a_url_has_one_form_in_which_it_is_checked_and_sent(url, host, said):
    if host is None:
        with pytest.raises(WebError):
            parse_url(url)
        return
    found = parse_url(url)
    assert (found.host, str(found)) == (host, said)
    assert parse_url(str(found)) == found


@given(st.text(max_size=40))
def test_whatever_is_written_as_a_host_is_refused_or_a_plain_name(text):
    try:
        found = parse_url(f"http://{text}/")
    except WebError:
        return
    assert found.host.isascii()
    assert not set(found.host) & set("@/\\?#%[] \0")
    assert not found.target.startswith("//") or text.startswith("/")


@given(st.integers(0, 2**32 - 1))
def test_a_number_is_the_address_that_systems_take_it_for(number):
    wanted = ipaddress.IPv4Address(number)
    parts = str(wanted).split(".")
    for spelt in (
        str(number),
        hex(number),
        f"0{number:o}",
        str(wanted),
        ".".join(hex(int(p)) for p in parts),
    ):
        assert ipv4(spelt) == wanted


async def test_a_name_with_one_private_address_among_public_ones_is_refused():
    with pytest.raises(WebError) as caught:
        await checked(parse_url("https://example.org/"), Fixed("1.1.1.1", "127.0.0.1"))
    assert caught.value.code == "private_address"


async def test_a_name_without_an_address_says_so():
    with pytest.raises(WebError) as caught:
        await checked(parse_url("https://example.org/"), Fixed())
    assert caught.value.code == "no_address"
