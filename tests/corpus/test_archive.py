"""Files within files: ZIP archives and e-mail with attachments."""

import io
import zipfile
from email.message import EmailMessage

import pytest

from helios.config import CorpusBudget
from helios.corpus import RejectsWriter, read_corpus
from helios.corpus.files import FileList, Outcome
from helios.errors import RecordError
from helios.types import TableKind

CSV = b"Item,Price\nChair,12\nLamp,40\n"


def packed(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def test_members_are_files_of_their_own(tmp_path):
    (tmp_path / "a.zip").write_bytes(
        packed(one__csv=CSV, bad__xlsx=b"PK no", pic__png=b"\x89PNG", note__txt=b"Hello there.")
    )
    files = FileList()
    with RejectsWriter(tmp_path / "rejects") as rejects:
        note, table = read_corpus(tmp_path / "a.zip", on_error="skip", rejects=rejects, files=files)
    assert (table.table_id, table.source, table.title) == ("a.zip/one.csv",) * 2 + ("one",)
    assert (note.passage_id, note.text) == ("a.zip/note.txt#passage-1", "Hello there.")
    assert {entry.file: entry.outcome for entry in files} == {
        "a.zip": Outcome.READ,
        "a.zip/bad.xlsx": Outcome.REJECTED,
        "a.zip/note.txt": Outcome.READ,
        "a.zip/one.csv": Outcome.READ,
        "a.zip/pic.png": Outcome.PASSED_OVER,
    }
    assert f'"{tmp_path / "a.zip" / "bad.xlsx"}"' in (tmp_path / "rejects").read_text()


def test_an_archive_in_an_archive_is_read_and_one_deeper_is_not(tmp_path):
    deep = packed(deep__zip=packed(deeper__zip=packed(x__csv=CSV), y__csv=CSV))
    (tmp_path / "a.zip").write_bytes(deep)
    files = FileList()
    (table,) = read_corpus(tmp_path / "a.zip", files=files)
    assert table.table_id == "a.zip/deep.zip/y.csv"
    (passed,) = (entry for entry in files if entry.outcome is Outcome.PASSED_OVER)
    assert (passed.file, passed.reason) == ("a.zip/deep.zip/deeper.zip", "within 2 other files; unpack them")


def test_members_count_together(tmp_path):
    (tmp_path / "a.zip").write_bytes(packed(**{f"n{n}__zip": packed(x__bin=b"x" * 900_000) for n in range(4)}))
    with pytest.raises(RecordError, match=r"advanced\.corpus\.file_mb"):
        list(read_corpus(tmp_path / "a.zip", budget=CorpusBudget(file_mb=2)))


def message(subject: str = "Invoice 12") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Ann <ann@x.org>", "bob@x.org", subject
    mail["Date"] = "Mon, 06 May 2024 10:00:00 +0000"
    mail.set_content("Dear Bob,\n\nplease find the invoice for the chairs below.\n")
    return mail


def test_a_message_with_attachments(tmp_path):
    mail = message()
    mail.add_attachment(CSV, maintype="text", subtype="csv", filename="invoice.csv")
    mail.add_attachment(message("Earlier"))
    (tmp_path / "m.eml").write_bytes(bytes(mail))
    headers, body, earlier, _, attached = sorted(
        read_corpus(tmp_path / "m.eml"), key=lambda record: ("invoice.csv" in record.source, record.source)
    )
    assert headers.kind is TableKind.INFOBOX
    assert headers.rows[0] == ("From", "Ann <ann@x.org>")
    assert (body.title, body.text) == ("Invoice 12", "Dear Bob, please find the invoice for the chairs below.")
    assert dict(body.metadata)["from"] == "Ann <ann@x.org>"
    assert earlier.title == "Earlier"
    assert (attached.table_id, attached.source) == ("m.eml/invoice.csv",) * 2


def test_a_page_as_a_message(tmp_path):
    mail = message()
    mail.set_content("<p>Prices rise.</p><table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html")
    (tmp_path / "m.eml").write_bytes(bytes(mail))
    _, table, passage = read_corpus(tmp_path / "m.eml")
    assert (table.rows, passage.text) == ((("1", "2"),), "Prices rise.")


def test_no_message(tmp_path):
    (tmp_path / "m.eml").write_text("just text")
    with pytest.raises(RecordError, match="not a message"):
        list(read_corpus(tmp_path / "m.eml"))
