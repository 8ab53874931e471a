"""What a hostile or a huge document costs: itself, and never more memory, time or silence than is said."""

from __future__ import annotations

import io
import json
import resource
import shutil
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import docx
import pytest

from fathom.models import Report, UnreadFile
from fathom.tools.documents.markdown import read_markdown
from fathom.tools.documents.readers import UnreadableFile, read_document
from fathom.tools.documents.worker import MEMORY, PLAIN_BYTES, read_file
from tests.conftest import ROOT, FathomCLI, PrefectServer, base_env
from tests.inprocess import kept

# The processes that read are children of this one, so their memory is not mixed with the memory of other children.
READ = """
import json, resource, sys
from pathlib import Path
from fathom.tools.documents import pool
from fathom.tools.documents.files import find_files
from fathom.models import Report, UnreadFile
from fathom.tools.documents.readers import UnreadableFile
pool.MAX_WORKERS = 1
found = {file.url: f"{type(read).__name__}: {read}" if isinstance(read, UnreadableFile) else read.title
         for file, read in pool.read_files(list(find_files(sys.argv[1:])))}
print(json.dumps({"found": found, "peak": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}))
"""


def word(body: bytes, extra: bytes = b"") -> bytes:
    """Return a docx whose body is XML that compresses well."""
    document, buffer = docx.Document(), io.BytesIO()
    document.save(buffer)
    packed = io.BytesIO()
    with zipfile.ZipFile(buffer) as before, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as after:
        for name in before.namelist():
            data = before.read(name)
            if name == "word/document.xml":
                start = data.index(b"<w:body>") + len(b"<w:body>")
                data = data[:start] + body + data[start:]
            after.writestr(name, data)
        if extra:
            after.writestr("word/media/image1.png", extra)
    return packed.getvalue()


def with_false_size(data: bytes, size: int) -> bytes:
    """Return a zip whose directory and headers declare another size of the largest member."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        largest = max(archive.infolist(), key=lambda member: member.file_size)
    true = struct.pack("<L", largest.file_size)
    return data.replace(
        struct.pack("<L", largest.compress_size) + true, struct.pack("<LL", largest.compress_size, size)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system limits no memory")
def test_a_bomb_costs_only_itself(tmp_path: Path) -> None:
    paragraphs = b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 1_500_000  # 51 MB of XML are 1.1 GB of elements
    zeros = bytes(1 << 20) * 201
    small = word(b"", zeros)
    (tmp_path / "a elements.docx").write_bytes(word(paragraphs))
    (tmp_path / "b zeros.docx").write_bytes(small)
    (tmp_path / "c false.docx").write_bytes(with_false_size(small, 1_000))
    members = {"[Content_Types].xml": b"<x/>", "xl/worksheets/sheet1.xml": zeros}
    with zipfile.ZipFile(tmp_path / "c zeros.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    (tmp_path / "d.html").write_text("<html><title>A page</title><p>Read after the bombs.</p></html>")
    (tmp_path / "e.docx").write_bytes(word(b"<w:p><w:r><w:t>Read too.</w:t></w:r></w:p>"))
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 2_000_000
    done = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path)],
        env=base_env(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    root = f"docs:{tmp_path.name}"
    assert answer["found"] == {
        f"{root}/a elements.docx": "Unfinished: reading it takes more than 576 MB of memory",
        f"{root}/b zeros.docx": "UnreadableFile: it unpacks to more than 200 MB",
        f"{root}/c false.docx": "UnreadableFile: it unpacks to more than 200 MB",
        f"{root}/c zeros.xlsx": "UnreadableFile: it unpacks to more than 200 MB",
        f"{root}/d.html": "A page",
        f"{root}/e.docx": "e",
    }
    assert answer["peak"] < MEMORY + (64 << 20)  # beside data, a process holds the code of its libraries


def test_of_a_long_text_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    begins, ends = "Zeile über Ebbe und Flut.\n".encode(), "Spätestens".encode()
    cut = begins.ljust(PLAIN_BYTES - 3) + ends  # in the middle of a letter
    path.write_bytes(cut.ljust(2 * PLAIN_BYTES) + b"The end.")
    read = read_file(path)
    assert (read.text, read.unread) == ("Zeile über Ebbe und Flut.", "only the first 20 of 41 MB were read")
    path.write_bytes(cut[:PLAIN_BYTES].rstrip(ends))
    assert read_file(path).unread == ""


def test_a_long_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.pdf"
    with path.open("wb") as stream:
        stream.write(b"%PDF-1.7\n")
        stream.truncate(200_000_000)  # a hole, which takes no room
    with pytest.raises(UnreadableFile, match="larger than 100 MB"):
        read_file(path)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A folder with one note that can be read, one too long and 24 damaged files, some of them alike."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tides.md").write_text(
        "# Tides\n\nTides form on moons in liquid methane as they form in seas of water.\n"
    )
    (folder / "long.txt").write_bytes(b"Methane seas are cold.".ljust(PLAIN_BYTES + 1) + b"The end.")
    for number in range(24):
        (folder / f"broken{number:02}.pdf").write_bytes(b"%PDF-1.4 broken" + bytes(number // 2))
    return folder


@pytest.mark.usefixtures("home", "providers")
async def test_files_that_were_not_read_are_in_the_report_and_in_its_replay(
    notes: Path, tmp_path: Path, fathom_cli: FathomCLI
) -> None:
    result = await kept(tmp_path / "store", docs=[str(notes)], tools=["documents"], profile="quick")
    damaged, long = result.warnings
    assert (
        damaged.startswith("docs:notes/broken00.pdf, ") and "broken19.pdf, and 4 more files: it is a damaged" in damaged
    )
    assert long.startswith("docs:notes/long.txt: only the first 20")
    folder = Path(result.artifacts)
    report = Report.model_validate_json((folder / "report.json").read_bytes())
    assert len(report.unread) == 25
    assert report.unread[-1] == UnreadFile(path="docs:notes/long.txt", reason="only the first 20 of 21 MB were read")
    [warning] = [said for said in report.warnings if said.startswith("25 files of yours were not read, or only in")]
    assert warning.count("it is a damaged pdf") == 1, "each reason is said once"
    assert "docs:notes/broken02.pdf, and 21 more files: it is" in warning
    markdown = (folder / "report.md").read_text()
    _, _, coverage = markdown.partition("## How this was researched")
    assert coverage.count("docs:notes/broken") == 20
    assert "and 4 more files: it is a damaged" in coverage and "docs:notes/long.txt" in coverage
    assert "docs:notes/broken19.pdf" in (folder / "report.html").read_text()

    shutil.rmtree(notes)  # a replay does not see the files
    shown = fathom_cli(["show", result.run_id, "--artifacts", str(tmp_path / "store"), "--json"])
    assert json.loads(shown.stdout)["result"]["warnings"] == result.warnings
    done = fathom_cli(["replay", result.run_id, "--artifacts", str(tmp_path / "store"), "--json"])
    assert done.returncode == 0, done.stderr
    assert {file["state"] for file in json.loads(done.stdout)} == {"same"}


@pytest.mark.usefixtures("home")
def test_a_file_that_may_hold_the_answer_is_named_also_when_nothing_else_is_printed(
    tmp_path: Path, prefect_server: PrefectServer, fathom_cli: FathomCLI
) -> None:
    folder = tmp_path / "office"
    folder.mkdir()
    (folder / "tides.md").write_text("# Tides\n\nThe sea rises twice a day.\n")
    (folder / "prices.xlsx").write_bytes(b"PK\x03\x04 cut off")
    (folder / "call.mp3").write_bytes(bytes(range(256)))
    question = [
        "research",
        "What is the price of the Hygro Pro?",
        "--docs",
        str(folder),
        "--artifacts",
        str(tmp_path / "s"),
    ]
    done = fathom_cli([*question, "-q"], prefect_server.env)
    assert done.stdout == ""
    assert "fathom: docs:office/call.mp3: it is not text\n" in done.stderr
    assert "fathom: docs:office/prices.xlsx: it is a damaged xlsx" in done.stderr
    [run_folder] = (tmp_path / "s" / "research_artifacts").iterdir()
    unread = json.loads((run_folder / "result.json").read_text())["unanswered"]["unread"]
    assert [file["path"] for file in unread] == ["docs:office/call.mp3", "docs:office/prices.xlsx"]
    assert "Files of yours that were not read" in (run_folder / "unanswered.md").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "| a |\n|---|\n| b |\n" * 60_000,  # rules that could each begin a table
        "".join(f"{'`' * length}x" for length in range(1, 2_500)),  # marks that nothing closes
    ],
)
def test_markdown_takes_a_time_that_grows_with_its_length(text: str) -> None:
    began = time.process_time()
    _, sections, _, _ = read_markdown(text)
    assert "".join(section.text for section in sections).split() == text.split()
    assert time.process_time() - began < 60  # 2 s; many minutes, were each looked for in all that follows


KEYS = 20_000


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is counted otherwise")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        # Each mapping takes all keys of the one before it: 200 million of them, 7 GB.
        ("a.yaml", "".join(f"a{n}: &a{n} {{<<: *a{max(n - 1, 0)}, k{n}: 1}}\n" for n in range(KEYS))),
        (
            "b.yaml",
            f"a: &a {{{', '.join(f'k{n}: 1' for n in range(KEYS))}}}\nb: {{<<: [{', '.join(['*a'] * KEYS)}]}}\n",
        ),
        ("c.toml", f"a{'.a' * 200_000} = 1\n"),
    ],
    ids=["merges of merges", "one merge many times", "a key of many parts"],
)
def test_keys_take_a_time_and_memory_that_grow_with_their_file(name: str, text: str) -> None:
    """Such a file is read as the text that it is."""
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown = read_document(name, text.encode()).sections
    assert "".join(section.text for section in shown).split() == text.split()
    assert time.process_time() - began < 60  # 1 s
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY >> 10  # kilobytes
