"""Configuration: where values come from, what is refused, what a project may do."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.app import config_file
from croze.app.config import Config, entries, load
from croze.app.keypath import join, split
from croze.app.keys import stored_keys
from croze.app.options import RunOptions
from croze.app.paths import Paths, find_project
from croze.app.settings import SECTIONS, Settings, fields_of
from croze.types.errors import ConfigError


class Home:
    """A user's folders and a project in a temporary place."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.env = {"HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        self.paths = Paths.of(self.env)

    def user(self, text: str) -> None:
        self.paths.config.mkdir(parents=True, exist_ok=True)
        self.paths.config_file.write_text(text)

    def project_file(self, text: str, *, trusted: bool) -> None:
        folder = self.project / ".croze"
        folder.mkdir(exist_ok=True)
        (folder / "config.toml").write_text(text)
        if trusted:
            digest = hashlib.sha256(text.encode()).hexdigest()
            self.paths.state.mkdir(parents=True, exist_ok=True)
            self.paths.trusted_file.write_text(
                json.dumps({str(self.project.resolve()): {".croze/config.toml": digest}})
            )

    def load(self, overrides: dict[str, object] | None = None, **env: str) -> Config:
        return load(self.project, overrides=overrides, env={**self.env, **env})


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_without_any_file_everything_is_at_its_default_and_nothing_is_created(home: Home) -> None:
    config = home.load()
    assert config.settings == Settings()
    assert config.sources == {}
    assert not home.paths.config.exists()
    assert not home.paths.data.exists()
    assert config.settings.store.max_cache_size == 100
    assert config.settings.store.cache_ttl == 300
    assert config.settings.store.lock_timeout == 10
    assert config.settings.store.backup_interval == 3600
    assert config.settings.store.max_backups == 10
    assert config.settings.store.enable_compression is False


def test_each_source_wins_over_the_one_before_it(home: Home) -> None:
    home.user("[model]\nmodel = 'a:user'\nplan = 'a:user'\nchat = 'a:user'\nedit = 'a:user'\n")
    home.project_file(
        "[model]\nplan = 'a:project'\nchat = 'a:project'\nedit = 'a:project'\n", trusted=True
    )
    config = home.load(
        {"model.edit": "a:argument"}, CROZE_MODEL__CHAT="a:env", CROZE_MODEL__EDIT="a:env"
    )
    model = config.settings.model
    assert (model.model, model.plan) == (("a:user",), ("a:project",))
    assert (model.chat, model.edit) == (("a:env",), ("a:argument",))
    assert [config.source(f"model.{r}") for r in ("model", "plan", "chat", "edit", "code")] == [
        "user",
        "project",
        "environment",
        "argument",
        "default",
    ]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        *((word, True) for word in ("true", "1", "YES", "on")),
        *((word, False) for word in ("false", "0", "No", "off")),
    ],
)
def test_environment_booleans_have_four_words_each(home: Home, word: str, value: bool) -> None:
    config = home.load(CROZE_STORE__ENABLE_COMPRESSION=word)
    assert config.settings.store.enable_compression is value


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("CROZE_STORE__ENABLE_COMPRESSION", "maybe", "true | false"),
        ("CROZE_STORE__MAX_CACHE_SIZE", "0", "integer >= 1"),
        ("CROZE_STORE__MAX_CACHE_SIZE", "many", "integer >= 1"),
        ("CROZE_STORE__LOCK_TIMEOUT", "-1", "number > 0"),
        ("CROZE_STORE__LOCK_TIMEOUT", "nan", "number > 0"),
        ("CROZE_STORE__LOG_LEVEL", "LOUD", "DEBUG | INFO | WARNING | ERROR | CRITICAL"),
        ("CROZE_PERMISSIONS__MODE", "yolo", "plan | ask | auto-edit | full"),
        ("CROZE_MODEL__TEMPERATURE", "3", "number >= 0, <= 2"),
        ("CROZE_MODEL__MAX_RETRIES", "-2", "integer >= -1"),
        ("CROZE_PROVIDERS__LAB__BASE_URL", "file:///etc", "^https?://"),
    ],
)
def test_a_wrong_environment_value_names_key_value_source_and_what_is_allowed(
    home: Home, name: str, value: str, allowed: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        home.load(**{name: value})
    key = name.removeprefix("CROZE_").lower().replace("__", ".")
    assert key in caught.value.message
    assert repr(value) in caught.value.message
    assert name in caught.value.message
    assert allowed in caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "[store]\nmax_cache_size = 'big'",
        "[store]\nmax_cache_size = true",
        "[store]\nlock_timeout = nan",
        "[store]\nbackup_enabled = 1",
        "[store]\nbackup_enabled = 'yes'",
        "[permissions]\nallow = [1]",
        "[model]\nmodel = ['']",
        "[limits]\nmax_turns = 1.5",
        "[model.model]\nname = 'x'",
    ],
)
def test_a_wrong_value_in_the_file_names_the_file(home: Home, line: str) -> None:
    home.user(line)
    with pytest.raises(ConfigError) as caught:
        home.load()
    assert str(home.paths.config_file) in caught.value.message
    assert caught.value.params["key"] == line.partition("\n")[0].strip("[]").split(".")[0] + (
        "." + line.partition("\n")[2].split(" ")[0] if "model.model" not in line else ".model"
    )


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("[store]\nlock_timout = 3", "store.lock_timeout"),
        ("[stroe]\nlock_timeout = 3", "store.lock_timeout"),
        ("lock_timeout = 3", "store.lock_timeout"),
        ("[models.'a:b']\nwindwo = 3", 'models."a:b".window'),
    ],
)
def test_an_unknown_key_is_an_error_with_the_nearest_name(home: Home, text: str, near: str) -> None:
    home.user(text)
    with pytest.raises(ConfigError) as caught:
        home.load()
    if text.startswith("[stroe]"):
        assert "stroe" in caught.value.message
    else:
        assert near in caught.value.hint


def test_an_unknown_environment_setting_is_an_error(home: Home) -> None:
    with pytest.raises(ConfigError, match="CROZE_STORE__LOCK"):
        home.load(CROZE_STORE__LOCK="3")
    assert home.load(CROZE_SOMETHING="3").sources == {}


@pytest.mark.parametrize(
    "content",
    [b"[model\n", b"\xff\xfe\x00", b"x = " + b"[" * 5000, b"a = 1\na = 2\n"],
    ids=["syntax", "not utf-8", "nested too deep", "twice"],
)
def test_a_file_that_is_no_toml_is_one_clear_error(home: Home, content: bytes) -> None:
    home.paths.config.mkdir(parents=True)
    home.paths.config_file.write_bytes(content)
    with pytest.raises(ConfigError, match="not valid TOML"):
        home.load()


def test_a_file_that_is_no_plain_file_or_huge_is_refused_at_once(home: Home) -> None:
    home.paths.config.mkdir(parents=True)
    os.mkfifo(home.paths.config_file)
    with pytest.raises(ConfigError, match="not a regular file"):
        home.load()
    home.paths.config_file.unlink()
    home.paths.config_file.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than"):
        home.load()


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("code_model", "code"),
        ("planner_model", "plan"),
        ("designer_model", "design"),
        ("emb_model", "embed"),
        ("vl_model", "vision"),
        ("commit_model", "commit"),
        ("index_model", "index"),
    ],
)
def test_roles_have_the_names_that_users_know(home: Home, name: str, role: str) -> None:
    home.user(f"{name} = 'a:one, b:two'\n[model]\nmodel = 'c:three'\n")
    assert home.load().settings.model.candidates(role) == ("a:one", "b:two")
    home.user(f"[model]\n{name} = ['a:one', 'b:two']\n")
    assert home.load().settings.model.candidates(role) == ("a:one", "b:two")


def test_every_role_falls_back_to_the_main_model(home: Home) -> None:
    home.user("[model]\nmodel = 'a:one'\n")
    model = home.load().settings.model
    other = {"dialect", "max_retries", "max_continuations", "temperature"}
    assert {
        model.candidates(role) for role in fields_of(SECTIONS["model"]) if role not in other
    } == {("a:one",)}


def test_one_role_under_two_names_is_refused(home: Home) -> None:
    home.user("[model]\nplan = 'a:one'\nplanner_model = 'a:two'\n")
    with pytest.raises(ConfigError, match="set twice"):
        home.load()


def test_an_untrusted_projects_file_is_inert_and_told_in_one_notice(home: Home) -> None:
    home.project_file("[model]\nmodel = 'evil:model'\nnonsense [", trusted=False)
    config = home.load()
    assert config.settings == Settings()
    (notice,) = config.notices
    assert "not trusted" in notice.text
    assert "croze trust" in notice.hint


def test_a_trusted_file_that_has_changed_since_is_inert_again(home: Home) -> None:
    home.project_file("[model]\nmodel = 'a:one'\n", trusted=True)
    assert home.load().settings.model.model == ("a:one",)
    home.project_file("[model]\nmodel = 'evil:one'\n", trusted=False)
    assert home.load().settings.model.model == ()


def test_a_project_file_that_can_not_be_read_stops_nothing(home: Home) -> None:
    (home.project / ".croze").mkdir()
    os.mkfifo(home.project / ".croze" / "config.toml")
    (notice,) = home.load().notices
    assert "not a regular file" in notice.text


def test_a_trusted_project_may_tighten_but_never_loosen(home: Home) -> None:
    home.user(
        "[permissions]\nmode = 'auto-edit'\ndeny = ['execute_command(rm)']\n[limits]\nmax_cost = 2\n"
    )
    home.project_file(
        "[permissions]\nmode = 'full'\nallow = ['execute_command']\nsandbox = 'off'\n"
        "deny = ['execute_command(git push)']\n[limits]\nmax_cost = 5\nmax_turns = 30\n"
        "[store]\nlock_timeout = 1\n",
        trusted=True,
    )
    config = home.load()
    permissions = config.settings.permissions
    assert permissions.mode == "auto-edit"
    assert permissions.allow == ()
    assert permissions.sandbox is None
    assert permissions.deny == ("execute_command(rm)", "execute_command(git push)")
    assert config.settings.limits.max_cost == 2
    assert config.settings.limits.max_turns == 30
    assert config.settings.store.lock_timeout == 10
    assert len(config.notices) == 5
    home.project_file("[permissions]\nmode = 'plan'\nsandbox = 'read-only'\n", trusted=True)
    permissions = home.load().settings.permissions
    assert (permissions.mode, permissions.sandbox) == ("plan", "read-only")
    loosened = home.load({"permissions.mode": "full"}).settings.permissions
    assert loosened.mode == "full"


@pytest.mark.parametrize("user", [True, False])
@pytest.mark.parametrize("project", [True, False])
def test_a_project_may_take_network_away_but_not_give_it(
    home: Home, user: bool, project: bool
) -> None:
    home.user(f"[permissions]\nnetwork = {str(user).lower()}\n")
    home.project_file(f"[permissions]\nnetwork = {str(project).lower()}\n", trusted=True)
    settings = home.load().settings
    assert settings.permissions.network is (user and project)
    assert RunOptions(allow=("network",)).resolved(settings).network is True


def test_network_is_granted_by_a_rule_of_its_own_which_deny_beats() -> None:
    options = RunOptions(allow=("network", "look")).resolved(Settings())
    assert (options.network, options.allow) == (True, ("look",))
    options = RunOptions(allow=("network",), deny=("network", "x")).resolved(Settings())
    assert (options.network, options.deny) == (False, ("x",))
    assert RunOptions().resolved(Settings()).network is False


def test_tables_for_models_and_providers_are_typed(home: Home) -> None:
    home.user(
        '[models."ollama:qwen3"]\nwindow = 32768\ninput_price = 0\n'
        '[providers.lab]\nbase_url = "http://10.0.0.1:8000/v1"\napi_key_env = "LAB_KEY"\n'
    )
    config = home.load()
    assert config.settings.models["ollama:qwen3"].window == 32768
    assert config.settings.models["ollama:qwen3"].input_price == 0
    assert config.settings.providers["lab"].base_url == "http://10.0.0.1:8000/v1"
    assert entries(config)['models."ollama:qwen3".window'] == 32768
    assert config.source('models."ollama:qwen3".window') == "user"


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_dotted_key_reads_back_as_its_parts(parts: list[str]) -> None:
    key = ("models", *parts)
    assert split(join(key)) == key


@given(st.text())
def test_any_text_is_a_key_or_a_clear_error(text: str) -> None:
    try:
        parts = split(text)
    except ConfigError:
        return
    assert all(parts)


def test_config_set_keeps_comments_and_writes_for_the_user_alone(home: Home) -> None:
    home.user("# mine\n[store]  # the store\nlock_timeout = 5 # seconds\n")
    path = home.paths.config_file
    assert config_file.set_value(path, "store.lock_timeout", "7") == 7
    config_file.set_value(path, 'models."a:b".window', "100")
    config_file.set_value(path, "planner_model", "a:one,b:two")
    text = path.read_text()
    assert "# mine" in text
    assert "# the store" in text
    assert "# seconds" in text
    assert path.stat().st_mode & 0o777 == 0o600
    config = home.load()
    assert config.settings.store.lock_timeout == 7
    assert config.settings.models["a:b"].window == 100
    assert config.settings.model.plan == ("a:one", "b:two")


def test_config_set_replaces_a_role_under_its_other_name(home: Home) -> None:
    home.user("planner_model = 'a:old'\n")
    config_file.set_value(home.paths.config_file, "model.plan", "a:new")
    assert home.load().settings.model.plan == ("a:new",)


@pytest.mark.parametrize(
    ("key", "value"),
    [("store.lock_timeout", "never"), ("store.lock", "1"), ("", "1"), ("a..b", "1"), ('"x', "1")],
)
def test_config_set_refuses_before_it_writes(home: Home, key: str, value: str) -> None:
    home.user("[store]\nlock_timeout = 5\n")
    before = home.paths.config_file.read_bytes()
    with pytest.raises(ConfigError):
        config_file.set_value(home.paths.config_file, key, value)
    assert home.paths.config_file.read_bytes() == before
    assert list(home.paths.config.iterdir()) == [home.paths.config_file]


def test_config_set_leaves_a_broken_file_alone(home: Home) -> None:
    home.user("[store\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        config_file.set_value(home.paths.config_file, "store.lock_timeout", "5")
    assert home.paths.config_file.read_text() == "[store\n"


def test_config_set_follows_a_link_to_the_real_file(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    home.paths.config.mkdir(parents=True)
    home.paths.config_file.symlink_to(real)
    config_file.set_value(home.paths.config_file, "store.max_backups", "3")
    assert home.paths.config_file.is_symlink()
    assert "max_backups = 3" in real.read_text()


def test_unset_brings_the_default_back(home: Home) -> None:
    path = home.paths.config_file
    config_file.set_value(path, "limits.max_turns", "3")
    assert config_file.remove_value(path, "limits.max_turns") is True
    assert config_file.remove_value(path, "limits.max_turns") is False
    assert home.load().settings.limits.max_turns is None


@given(
    section=st.sampled_from(sorted(SECTIONS)),
    data=st.data(),
)
def test_every_default_is_a_value_that_its_own_key_takes(section: str, data: st.DataObject) -> None:
    fields = fields_of(SECTIONS[section])
    name = data.draw(st.sampled_from(sorted(fields)))
    default = fields[name].default
    if default is not None:
        raw = list(default) if isinstance(default, tuple) else default
        assert fields[name].convert(raw, text=False) == default


def test_keys_come_from_a_file_that_only_the_user_reads(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    assert stored_keys(path) == {}
    path.write_text('OPENAI_API_KEY = "sk-1"\nanthropic = "sk-2"\n')
    path.chmod(0o600)
    keys = stored_keys(path)
    assert keys == {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}
    assert "sk-" not in repr(keys)
    for mode in (0o640, 0o604, 0o644):
        path.chmod(mode)
        with pytest.raises(ConfigError) as caught:
            stored_keys(path)
        assert f"chmod 600 {path}" in caught.value.hint
        assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("text", ["openai = 3", 'openai = ""', "[openai]\nkey = 'sk-9'"])
def test_a_key_that_is_no_text_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        stored_keys(path)
    assert "openai" in caught.value.message
    assert "sk-9" not in caught.value.message + caught.value.hint


def test_xdg_folders_are_followed_and_relative_ones_ignored() -> None:
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "data", "XDG_STATE_HOME": ""}
    paths = Paths.of(env)
    assert paths.config == Path("/c/croze")
    assert paths.data == Path("/h/.local/share/croze")
    assert paths.state == Path("/h/.local/state/croze")
    assert paths.cache == Path("/h/.cache/croze")


def test_work_trees_of_one_repository_are_one_project(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    (main / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (main / ".git" / "worktrees" / "tree" / "commondir").write_text("../..\n")
    (tree / "deep").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {main}/.git/worktrees/tree\n")
    (main / ".git" / "worktrees" / "tree" / "gitdir").write_text(f"{tree}/.git\n")
    (main / "src").mkdir()
    first, second = find_project(main / "src"), find_project(tree / "deep")
    assert (first.root, second.root) == (main, tree)
    assert first.identity == second.identity == main / ".git"
    assert first.folder_name == second.folder_name
    assert first.folder_name.startswith("main-")


def test_folders_of_the_same_name_are_different_projects(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "x", tmp_path / "b" / "x"
    one.mkdir(parents=True)
    two.mkdir(parents=True)
    assert find_project(one).folder_name != find_project(two).folder_name
    assert find_project(one).root == one


def test_a_git_file_that_leads_nowhere_is_no_error(tmp_path: Path) -> None:
    (tmp_path / ".git").write_bytes(b"gitdir: /nowhere/\xff\n" + b"x" * 10_000)
    assert find_project(tmp_path).identity == tmp_path


def test_run_options_fall_back_to_the_settings_once(home: Home) -> None:
    home.user(
        "[permissions]\nmode = 'plan'\nallow = ['a']\n[limits]\nmax_turns = 4\nmax_cost = 1\n"
        "[model]\nmodel = 'a:one,b:two'\ndialect = 'xml'\n"
    )
    settings = home.load().settings
    options = RunOptions(allow=("b",), max_cost=0.5, headless=True).resolved(settings)
    assert options.mode == "plan"
    assert options.allow == ("a", "b")
    assert options.model == "a:one,b:two"
    assert options.dialect == "xml"
    assert options.limits.steps == 4
    assert options.limits.cost == 0.5
    assert options.resolved(settings) == options


def test_a_folder_where_the_file_should_be_is_refused_with_its_path(home: Home) -> None:
    home.paths.config_file.mkdir(parents=True)
    with pytest.raises(ConfigError, match="not a regular file"):
        home.load()
