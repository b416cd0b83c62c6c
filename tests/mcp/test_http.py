"""Servers at an address: bounded like the others, with the headers that they were given, logged in to by OAuth."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from croze.app.config import load
from croze.app.mcp import McpConfig
from croze.app.mcp_check import Look, forget_login, log_in
from croze.mcp.config import ServerSpec
from croze.mcp.failure import McpError
from croze.mcp.server import Server
from tests.mcp.conftest import Person, Workshop
from tests.mcp.site import Site, serve


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serve(Site()) as running:
        yield running


@pytest.fixture
async def guarded() -> AsyncIterator[Site]:
    """A site that wants a login."""
    async with serve(Site(login=True)) as running:
        yield running


def at(workshop: Workshop, site: Site, **fields: object) -> Server:
    spec = ServerSpec(name="site", url=f"{site.base}/mcp", **fields)  # type: ignore[arg-type]
    return workshop.servers(spec).get("site")


async def test_a_server_at_an_address_gets_the_headers_with_their_variables(
    workshop: Workshop, site: Site
) -> None:
    server = at(workshop, site, headers={"X-Key": "${OWNER_API_KEY}"})
    assert (await server.call("echo", {"text": "hi"}, Person())).text == "hi"
    assert site.headers["x-key"] == "sk-do-not-hand-on"


@pytest.mark.parametrize("tool", ["huge", "broken", "away"])
async def test_a_bad_answer_costs_one_call(workshop: Workshop, site: Site, tool: str) -> None:
    server = at(workshop, site, timeout=5.0)
    with pytest.raises(McpError):
        await server.call(tool, {}, Person())
    assert (await server.call("echo", {"text": "fine"}, Person())).text == "fine"


async def test_an_endless_stream_ends_with_the_calls_time(workshop: Workshop, site: Site) -> None:
    server = at(workshop, site, timeout=0.5)
    with pytest.raises(McpError, match="did not answer"):
        await server.call("endless", {}, Person())


async def test_an_address_where_nobody_listens_is_told(workshop: Workshop) -> None:
    server = workshop.servers(ServerSpec(name="gone", url="http://127.0.0.1:9/mcp")).get("gone")
    with pytest.raises(McpError, match="could not be started") as caught:
        await server.listing()
    assert caught.value.code == "mcp_start"


async def test_a_server_that_went_away_is_found_again(workshop: Workshop) -> None:
    async with serve(Site()) as first:
        server = at(workshop, first, timeout=3.0)
        await server.call("echo", {"text": "one"}, Person())
    with pytest.raises(McpError):
        await server.call("echo", {"text": "two"}, Person())


async def test_a_login_is_asked_for_by_name(workshop: Workshop, guarded: Site) -> None:
    with pytest.raises(McpError, match="wants a login") as caught:
        await at(workshop, guarded).listing()
    assert caught.value.code == "mcp_login"
    assert "croze mcp login site" in caught.value.hint


async def browser(url: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        assert (await client.get(url)).status_code == 200


def look_at(server: Server, folder: Path) -> Look:
    return Look(load(folder), {}, McpConfig(specs=(server.spec,)))


async def logged_in(server: Server, folder: Path) -> None:
    """Log in as a person does, with a browser."""
    pages: list[asyncio.Task[None]] = []
    await log_in(
        look_at(server, folder), "site", lambda url: pages.append(asyncio.create_task(browser(url)))
    )
    await asyncio.gather(*pages)
    assert len(pages) == 1


async def test_a_login_in_the_browser_is_kept_for_the_user_alone(
    workshop: Workshop, guarded: Site, tmp_path: Path
) -> None:
    server = at(workshop, guarded)
    look = look_at(server, tmp_path)
    await logged_in(server, tmp_path)
    [kept] = (look.config.paths.state / "mcp-tokens").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_bytes())["token"]["access_token"] == "access-1"
    workshop.folder = look.config.paths.state.parent
    around = workshop.around
    later = Server(server.spec, type(around)(around.root, {}, tmp_path, look.config.paths.state))
    assert (await later.call("echo", {"text": "in"}, Person())).text == "in"
    await later.close()
    assert forget_login(look, "site")
    assert not forget_login(look, "site")


async def test_an_access_that_has_run_out_is_renewed_without_the_user(
    workshop: Workshop, guarded: Site, tmp_path: Path
) -> None:
    server = at(workshop, guarded)
    state = look_at(server, tmp_path).config.paths.state
    await logged_in(server, tmp_path)
    [kept] = (state / "mcp-tokens").glob("*.json")
    values = json.loads(kept.read_bytes())
    kept.write_text(json.dumps({**values, "expires": 1.0}))
    guarded.tokens.clear()
    later = Server(server.spec, type(workshop.around)(workshop.root, {}, tmp_path, state))
    assert (await later.call("echo", {"text": "in"}, Person())).text == "in"
    await later.close()
    assert "refresh_token" in guarded.seen
    assert json.loads(kept.read_bytes())["token"]["access_token"] == "access-2"


async def test_tokens_go_to_no_other_address(
    workshop: Workshop, guarded: Site, tmp_path: Path
) -> None:
    server = at(workshop, guarded)
    await logged_in(server, tmp_path)
    state = look_at(server, tmp_path).config.paths.state
    async with serve(Site()) as other:
        spec = ServerSpec(name="site", url=f"{other.base}/mcp")
        [kept] = (state / "mcp-tokens").glob("*.json")
        kept.rename(kept.with_name(f"{spec.key}.json"))
        later = Server(spec, type(workshop.around)(workshop.root, {}, tmp_path, state))
        await later.listing()
        await later.close()
        assert "authorization" not in other.headers
