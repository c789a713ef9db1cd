"""Writers of small files that no library here writes: PDF and ODS."""

import io
import zipfile
from collections.abc import Callable

import pytest

HEIGHT = 842


class Pdf:
    """Pages of words and ruling lines, at points from the left and the top; `save` gives the file."""

    def __init__(self) -> None:
        self.pages: list[list[str]] = []

    def page(self) -> "Pdf":
        self.pages.append([])
        return self

    def text(self, left: float, top: float, text: str, *, size: float = 10, bold: bool = False) -> "Pdf":
        plain = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        font = "F2" if bold else "F1"
        self.pages[-1].append(f"BT /{font} {size} Tf {left} {HEIGHT - top - size} Td ({plain}) Tj ET")
        return self

    def lines(self, left: float, top: float, *lines: str, size: float = 10, bold: bool = False) -> "Pdf":
        for number, line in enumerate(lines):
            self.text(left, top + number * size * 1.2, line, size=size, bold=bold)
        return self

    def ruled(self, left: float, top: float, rows: list[list[str]], *, width: float = 100, height: float = 20) -> "Pdf":
        """A table with a line around every cell."""
        for number, row in enumerate(rows):
            for column, cell in enumerate(row):
                x, y = left + column * width, top + number * height
                self.pages[-1].append(f"{x} {HEIGHT - y - height} {width} {height} re S")
                self.text(x + 4, y + 4, cell)
        return self

    def image(self) -> "Pdf":
        """A picture that fills the page, as a scan does."""
        self.pages[-1].append(f"q 595 0 0 {HEIGHT} 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID x EI Q")
        return self

    def save(self) -> bytes:
        fonts = "/F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
        fonts += fonts.replace("F1", "F2").replace("Helvetica", "Helvetica-Bold")
        numbers = range(3, 3 + 2 * len(self.pages), 2)
        kids = " ".join(f"{number} 0 R" for number in numbers)
        bodies = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(self.pages)} >>"]
        for number, page in zip(numbers, self.pages, strict=True):
            content = "\n".join(page)
            bodies.append(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 {HEIGHT}] /Contents {number + 1} 0 R "
                f"/Resources << /Font << {fonts} >> >> >>"
            )
            bodies.append(f"<< /Length {len(content.encode('cp1252'))} >>\nstream\n{content}\nendstream")
        out, offsets = b"%PDF-1.4\n", []
        for number, body in enumerate(bodies, 1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n{body}\nendobj\n".encode("cp1252")
        table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
        size = len(bodies) + 1
        end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
        return out + f"{end}startxref\n{len(out)}\n%%EOF\n".encode()


@pytest.fixture
def pdf() -> Pdf:
    """An empty PDF file."""
    return Pdf()


def _ods(*rows: tuple[str, ...]) -> bytes:
    """A spreadsheet of text, as small as one can be."""
    cells = "".join(
        "<table:table-row>"
        + "".join(f'<table:table-cell office:value-type="string"><text:p>{c}</text:p></table:table-cell>' for c in row)
        + "</table:table-row>"
        for row in rows
    )
    names = ("office", "table", "text")
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet>"
            f'<table:table table:name="S">{cells}</table:table></office:spreadsheet></office:body>'
            "</office:document-content>",
        )
    return out.getvalue()


@pytest.fixture
def ods() -> Callable[..., bytes]:
    """The writer of a spreadsheet from its rows."""
    return _ods
