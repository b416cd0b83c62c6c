"""robots.txt as RFC 9309 reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from croze.web.robots import EVERYTHING, NOTHING, parse

GROUPS = """
User-agent: other
Disallow: /

User-agent: *
User-agent: somebody
Disallow: /private
Allow: /private/open
Disallow: /*.zip$
Sitemap: https://x.org/map.xml
"""


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/", True),
        ("/private", False),
        ("/private/x?y", False),
        ("/private/open", True),
        ("/a.zip", False),
        ("/a.zip?x", True),
        ("/PRIVATE", True),
        ("/%70rivate", False),
        ("/robots.txt", True),
    ],
)
def test_the_longest_rule_decides(target, allowed):
    assert parse(GROUPS, "croze").allows(target) is allowed


def test_a_group_that_names_the_robot_stands_alone():
    text = "User-agent: *\nDisallow: /\n\nUser-agent: Croze/1.0\nDisallow: /a\n"
    rules = parse(text, "croze")
    assert rules.allows("/b")
    assert not rules.allows("/a")


def test_two_groups_of_the_robot_are_one():
    text = "User-agent: croze\nDisallow: /a\nUser-agent: croze\nDisallow: /b\n"
    rules = parse(text, "croze")
    assert not rules.allows("/a")
    assert not rules.allows("/b")


def test_allow_wins_a_tie_and_an_empty_disallow_forbids_nothing():
    assert parse("User-agent: *\nDisallow: /a\nAllow: /a\n", "croze").allows("/a")
    assert parse("User-agent: *\nAllow: /a\nDisallow: /a\n", "croze").allows("/a")
    assert parse("User-agent: *\nDisallow:\n", "croze").allows("/a")


def test_everything_and_nothing_say_so():
    assert EVERYTHING.allows("/a")
    assert not NOTHING.allows("/a")


def test_what_is_no_robots_file_forbids_nothing():
    assert parse("<html>Not found</html>", "croze") == EVERYTHING


def test_many_stars_take_no_time_out_of_proportion():
    rules = parse(f"User-agent: *\nDisallow: /{'*a' * 500}b$\n", "croze")
    assert rules.allows("/" + "a" * 100_000)


@given(st.text(max_size=200), st.text(max_size=30))
def test_whatever_a_site_says_is_read(text, target):
    assert parse(text, "croze").allows("/" + target) in (True, False)
