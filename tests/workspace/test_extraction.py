"""Documents read apart: within time and memory, once a content, and without a trace when cancelled."""

import asyncio
import os

import pytest

from croze.documents.read import Request
from croze.workspace.apart import Overflowed, apart
from croze.workspace.extraction import LARGEST, ExtractionError, Extractions
from tests.documents.made import pdf

PDF = Request("pdf")


async def refusal(extractions: Extractions, request: Request, data: bytes) -> ExtractionError:
    with pytest.raises(ExtractionError) as caught:
        await extractions.text(request, data, os.environ)
    return caught.value


async def test_a_document_is_read_once_a_content():
    extractions = Extractions()
    one, again, other = await asyncio.gather(
        extractions.text(PDF, pdf("same words"), os.environ),
        extractions.text(PDF, pdf("same words"), os.environ),
        extractions.text(PDF, pdf("other words"), os.environ),
    )
    assert one is again
    assert "same words" in one.text
    assert "other words" in other.text
    assert extractions.started == 2


async def test_what_was_read_long_ago_goes_when_memory_is_short():
    extractions = Extractions(keep=40)
    for text in ("first words", "second words", "first words"):
        await extractions.text(PDF, pdf(text), os.environ)
    assert extractions.started == 3


async def test_a_document_that_takes_too_long_is_given_up():
    error = await refusal(Extractions(seconds=0.01), PDF, pdf("x"))
    assert error.code == "too_slow"


async def test_a_document_that_takes_too_much_memory_is_given_up():
    """60 MB of empty lists are more than a gigabyte in memory."""
    data = b'{"cells": [' + b"[]," * (20 << 20) + b"[]]}"
    assert len(data) < LARGEST
    error = await refusal(Extractions(seconds=90), Request("notebook"), data)
    assert error.code in ("too_large", "too_slow")


async def test_a_document_that_is_too_large_is_not_even_sent():
    extractions = Extractions()
    assert (await refusal(extractions, PDF, bytes(65 << 20))).code == "too_large"
    assert extractions.started == 0


async def test_a_failure_is_told_and_tried_again_the_next_time():
    extractions = Extractions()
    for _ in range(2):
        error = await refusal(extractions, Request("xlsx"), b"PK\x03\x04")
        assert error.code == "damaged"
        assert "Excel workbook" in error.message
    assert extractions.started == 2


async def test_a_cancelled_reading_leaves_the_next_one_free():
    extractions = Extractions()
    tasks = [
        asyncio.create_task(extractions.text(PDF, pdf(f"words {at}"), os.environ))
        for at in range(4)
    ]
    while not extractions.started:  # noqa: ASYNC110 (a bound is the test's own)
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    assert all(
        isinstance(each, asyncio.CancelledError)
        for each in await asyncio.gather(*tasks, return_exceptions=True)
    )
    assert "words 0" in (await extractions.text(PDF, pdf("words 0"), os.environ)).text


async def test_a_secret_of_the_environment_and_a_path_of_the_project_are_not_handed_on(tmp_path):
    (tmp_path / "msgspec.py").write_text("raise SystemExit(9)")
    env = {**os.environ, "OPENAI_API_KEY": "sk-x", "PYTHONPATH": str(tmp_path)}
    found = await Extractions().text(PDF, pdf("words"), env)
    assert "words" in found.text


async def test_output_above_its_most_ends_the_program():
    with pytest.raises(Overflowed):
        await apart("this", b"", env=os.environ, timeout=60, most=10)
