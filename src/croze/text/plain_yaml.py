"""YAML that a model wrote: texts, lists and maps, and nothing that runs, refers or grows."""

from typing import Any


def load_plain(text: str) -> Any:
    """The value of `text`; every scalar stays text. Raises ValueError with a sentence for whoever wrote it."""
    import yaml  # some 10 ms, and only where there is any

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        aliased = any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, loader))
        value = None if aliased else yaml.load(text, loader)  # noqa: S506 (a base loader makes nothing else)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"Line {line} is not YAML: {error.problem or error.context}.") from error
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        raise ValueError(f"It is not YAML: {' '.join(str(error).split())[:200]}.") from error
    if aliased:
        raise ValueError("It uses a YAML alias (*name): write the text out.")
    return value
