"""Both protocols, for the tests that run under each."""

import pytest

from croze.dialect.base import Dialect
from croze.dialect.native import NativeDialect
from croze.dialect.xml import XmlDialect
from tests.dialect.voices import Voice


@pytest.fixture(params=["xml", "native"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return XmlDialect() if request.param == "xml" else NativeDialect()


@pytest.fixture
def voice(dialect: Dialect) -> Voice:
    return Voice(dialect)
