"""What becomes of every file of a folder: nothing vanishes, and nothing that is damaged harms another file."""

import io
import json
import random
import zipfile
from email.message import EmailMessage

import docx
import openpyxl
import pptx
import pytest

from helios.corpus import CorpusWriter, RejectsWriter, read_corpus
from helios.corpus.files import FileList, Outcome
from helios.errors import CorpusError, RecordError
from helios.types import Passage

CASES = 16


def listed(folder, **options):
    files = FileList()
    records = list(read_corpus(folder, files=files, **options))
    return records, {entry.file: entry for entry in files}


def test_every_file_is_read_rejected_or_passed_over_with_a_reason(tmp_path):
    for name, content in {
        "table.csv": "a,b\n1,2\n",
        "empty.csv": "",
        "blank.txt": "\n  \n",
        "commas.csv": ",,\n",
        "broken.json": "{",
        "picture.png": "x",
        "~$table.xlsx": "x",
        ".hidden.csv": "a,b\n1,2\n",
        "old.doc": "x",
        "thing.xyz": "x",
        "settings.yaml": "a: 1",
        "dev.json": '[{"question_id": "q", "question": "?"}]',
        "qrels.tsv": "query-id\tcorpus-id\tscore\n",
        ".git/config": "x",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    records, files = listed(tmp_path, on_error="auto")
    assert [record.source for record in records] == ["table.csv"]
    assert {name: (entry.outcome.value, entry.reason) for name, entry in files.items()} == {
        ".git": ("passed over", "hidden"),
        ".hidden.csv": ("passed over", "hidden"),
        "blank.txt": ("passed over", "empty"),
        "broken.json": (
            "rejected",
            "not valid JSON: Expecting property name enclosed in double quotes at line 1, column 2",
        ),
        "commas.csv": ("passed over", "holds no table and no text"),
        "dev.json": ("passed over", "questions for an evaluation"),
        "empty.csv": ("passed over", "empty"),
        "old.doc": ("passed over", ".doc is not a format that is read; save it as DOCX"),
        "picture.png": ("passed over", "image: no text to read"),
        "qrels.tsv": ("passed over", "relevance judgements"),
        "settings.yaml": ("passed over", "settings, by its name"),
        "table.csv": ("read", ""),
        "thing.xyz": ("passed over", "not a format that is read: .xyz"),
        "~$table.xlsx": ("passed over", "a lock file of an office program"),
    }
    assert (files["table.csv"].tables, files["table.csv"].rows) == (1, 1)


def test_what_a_file_that_cannot_be_read_does_to_a_folder(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "p", "text": "x"}\n')
    (tmp_path / "b.xlsx").write_text("no workbook")
    with pytest.raises(RecordError, match="not a readable XLSX file"):
        list(read_corpus(tmp_path))
    records, files = listed(tmp_path, on_error="auto")
    assert len(records) == 1 and files["b.xlsx"].outcome is Outcome.REJECTED
    with pytest.raises(RecordError, match="not a readable XLSX file"):
        list(read_corpus(tmp_path / "b.xlsx", on_error="auto"))
    (tmp_path / "a.jsonl").write_text('{"id": "p", "text": "x"}\n{"id": 3\n')
    with pytest.raises(RecordError, match=r"a\.jsonl:2: not valid JSON"):
        list(read_corpus(tmp_path, on_error="auto"))
    with pytest.raises(CorpusError, match="is not a format that is read"):
        (tmp_path / "b.doc").write_text("x")
        list(read_corpus(tmp_path / "b.doc"))


def test_a_file_that_was_read_in_part_says_so(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\nx\0,3\n4,5\n")
    _, files = listed(tmp_path, on_error="skip")
    entry = files["t.csv"]
    assert (entry.outcome, entry.rows, entry.rejected) == (Outcome.READ, 2, 1)
    assert entry.reason.startswith("NUL bytes")


def test_a_list_can_be_written_and_read(tmp_path):
    (tmp_path / "t\u2028\x85.csv").write_text("a,b\n1,2\n")  # signs at which a text, but no file of lines, breaks
    files = FileList()
    list(read_corpus(tmp_path, files=files))
    files.write(tmp_path / "files.jsonl")
    assert list(FileList.load(tmp_path / "files.jsonl")) == list(files)
    assert json.loads((tmp_path / "files.jsonl").read_text())["outcome"] == "read"


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def some_docx():
    document = docx.Document()
    document.add_heading("Title", 0)
    document.add_paragraph("Some text.")
    table = document.add_table(rows=2, cols=2)
    table.cell(0, 0).text = "a"
    return saved(document)


def some_pptx():
    show = pptx.Presentation()
    show.slides.add_slide(show.slide_layouts[0]).shapes.title.text = "Title"
    return saved(show)


def some_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in.csv", "a,b\n1,2\n")
        archive.writestr("in.docx", some_docx())
    return out.getvalue()


def some_mail():
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@x.org", "Größe"
    mail.set_content("Text.\n")
    mail.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="in.csv")
    return bytes(mail)


def some_book():
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, "x"])
    return saved(book)


FILES = {
    "f.docx": some_docx,
    "f.pptx": some_pptx,
    "f.xlsx": some_book,
    "f.xls": some_book,
    "f.zip": some_zip,
    "f.eml": some_mail,
    "f.json": lambda: b'{"a": [{"b": 1, "c": {"d": "x"}}, {"b": 2}], "e": "\\u00e9"}',
    "f.jsonl": lambda: b'{"name": "a", "n": [1, {"x": 2}]}\n{"name": "b"}\n',
    "f.yaml": lambda: b"a: &x [1, 2]\nb: *x\nc:\n  - {d: 1}\n  - {d: 2}\n",
    "f.xml": lambda: b'<?xml version="1.0"?><a b="1"><c>x</c><c>y</c><d>t <e>u</e></d></a>',
    "f.txt": lambda: "Title\n\nA line – of text\n- item\n\nkey: value\n".encode(),
    "f.csv": lambda: b"a;b\n1,5;x\n\nc;d\n2;y\n3;z\n",
}


def damaged(data, chance):
    """A file cut off, or with bytes changed, taken out or put in."""
    if chance.random() < 0.4:
        return data[: chance.randrange(1, len(data))]
    changed = bytearray(data)
    for _ in range(chance.choice([1, 2, 8, 32])):
        at = chance.randrange(len(changed))
        changed[at : at + chance.choice([0, 1, 1, 4])] = bytes(
            chance.randrange(256) for _ in range(chance.choice([0, 1, 1, 4]))
        )
    return bytes(changed)


@pytest.mark.parametrize("name", [*FILES, "f.pdf", "f.ods"])
def test_a_damaged_file_ends_in_records_or_a_reject_and_harms_no_other(name, pdf, ods, tmp_path):
    page = pdf.page().text(50, 50, "Title", size=20).ruled(50, 80, [["a", "b"], ["c", "1"]])
    whole = FILES | {"f.pdf": page.save, "f.ods": lambda: ods(("a", "b"), ("1", "2"))}
    content = whole[name]()
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for good in "az":
        (corpus / f"{good}.jsonl").write_text(f'{{"id": "good {good}", "text": "x"}}\n')
    writer = CorpusWriter(tmp_path / "store")
    for seed in range(CASES):
        (corpus / name).write_bytes(damaged(content, random.Random(seed)))
        with RejectsWriter(tmp_path / "rejects") as rejects:
            records, files = listed(corpus, on_error="skip", rejects=rejects)
        assert {"good a", "good z"} <= {record.passage_id for record in records if isinstance(record, Passage)}, seed
        assert files[name].outcome is Outcome.READ or files[name].reason, seed
        for record in records:
            writer.add(record)
        reasons = (tmp_path / "rejects").read_text()
        assert "Traceback" not in reasons and "the process that read it ended" not in reasons, seed
    writer.discard()
