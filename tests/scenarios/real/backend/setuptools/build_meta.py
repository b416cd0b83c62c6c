"""A build backend that builds nothing: it hands pip the metadata that lies in the sdist, so that
downloading a package runs none of its code (`pip download` wants metadata and would run setup.py)."""

import email
from pathlib import Path


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: object = None
) -> str:
    text = Path("PKG-INFO").read_text("utf-8")
    said = email.message_from_string(text)
    folder = Path(metadata_directory, f"{said['Name']}-{said['Version']}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(text, "utf-8")
    return folder.name


class __legacy__:  # noqa: N801 - the name that pip asks for where a package has only a setup.py
    prepare_metadata_for_build_wheel = staticmethod(prepare_metadata_for_build_wheel)
