"""Prompts apart from logic: a function gives the variables, a Jinja2 template gives the text."""

from __future__ import annotations

import functools
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from croze.types.errors import CrozeError

if TYPE_CHECKING:
    import jinja2

P = ParamSpec("P")
Q = ParamSpec("Q")
T = TypeVar("T")
Variables = Mapping[str, Any]


class PromptError(CrozeError):
    """A template and its variables don't fit together."""

    code = "prompt"


class PromptFunction(Generic[P]):
    """A function whose template is its docstring or a file, and whose result is the variables.

    Calling it still calls the function; `.prompt(...)` renders. A variable may itself be a
    `PromptFunction` that needs no arguments (a bound method, say): it is rendered in its place.
    """

    def __init__(self, function: Callable[P, Variables], file: str | None = None) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._file = file

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Variables:
        return self._function(*args, **kwargs)

    @overload
    def __get__(self, obj: None, owner: type | None = None) -> PromptFunction[P]: ...

    @overload
    def __get__(
        self: PromptFunction[Concatenate[T, Q]], obj: T, owner: type | None = None
    ) -> PromptFunction[Q]: ...

    def __get__(self, obj: object, owner: type | None = None) -> PromptFunction[Any]:
        if obj is None:
            return self
        return PromptFunction(self._function.__get__(obj, owner), self._file)

    @property
    def name(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    @property
    def source(self) -> str:
        """The template's text. Files lie in `prompts/` of the package that the function is in."""
        if self._file is None:
            if not self._function.__doc__:
                raise PromptError(
                    f"prompt {self.name} has no template",
                    hint="write it as the docstring (python -OO removes those), or name a file",
                )
            return inspect.cleandoc(self._function.__doc__)
        package = inspect.unwrap(self._function).__globals__["__package__"]
        try:
            data = pkgutil.get_data(package, f"prompts/{self._file}")
        except (OSError, ValueError) as error:
            raise PromptError(f"prompt {self.name}: {error}") from error
        if data is None:
            raise PromptError(f"prompt {self.name}: package {package!r} holds no {self._file}")
        return data.decode()

    def prompt(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """The rendered text; raises `PromptError` where a variable is missing."""
        variables = self._function(*args, **kwargs)
        if not isinstance(variables, Mapping):
            raise PromptError(
                f"prompt {self.name} returned {type(variables).__name__}, not its variables",
                hint="return a mapping of the template's variables",
            )
        return _render(self.name, self.source, variables)


def prompt(
    file: str | None = None,
) -> Callable[[Callable[P, Variables]], PromptFunction[P]]:
    """Turn a function into a prompt. Without `file` its docstring is the template."""

    def decorate(function: Callable[P, Variables]) -> PromptFunction[P]:
        return PromptFunction(function, file)

    return decorate


def _render(name: str, source: str, variables: Variables) -> str:
    import jinja2

    try:
        return _environment().from_string(source).render(variables)
    except jinja2.UndefinedError as error:
        raise PromptError(
            f"prompt {name}: {error.message}", hint="return every variable that the template uses"
        ) from error
    except jinja2.TemplateSyntaxError as error:
        raise PromptError(f"prompt {name}, line {error.lineno}: {error.message}") from error
    except jinja2.TemplateError as error:
        raise PromptError(f"prompt {name}: {error}") from error


@functools.cache
def _environment() -> jinja2.Environment:
    import jinja2

    return jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        finalize=_render_nested,
        autoescape=False,  # noqa: S701  the text goes to a model, not to a browser
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render_nested(value: Any) -> Any:
    return value.prompt() if isinstance(value, PromptFunction) else value
