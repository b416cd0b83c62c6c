"""Text of files between tags that it can't end."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def fenced(tag: str, text: str, **attributes: str) -> str:
    """The text between tags that don't occur in it. Attributes that are empty are left out."""
    name, number = tag, 1
    while f"</{name}" in text:
        number += 1
        name = f"{tag}-{number}"
    shown = "".join(
        f' {key}="{value.translate(_ESCAPES)}"' for key, value in attributes.items() if value
    )
    return f"<{name}{shown}>\n{text}\n</{name}>"
