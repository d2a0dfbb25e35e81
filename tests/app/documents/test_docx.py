from __future__ import annotations

import io
from pathlib import Path

import docx

from tests.app.documents import samples
from tests.app.documents.conftest import Read, Refusal

TEXT = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>".format


def saved(document: docx.document.Document) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def test_headings_paragraphs_lists_and_tables_keep_their_order(read: Read) -> None:
    document = docx.Document()
    document.add_heading("Report", 0)
    document.add_heading("Results", 2)
    document.add_paragraph("Before the table.")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["Name", "Value", "a|b", "1\n2"], strict=True):
        cell.text = text
    document.add_paragraph("apples", style="List Bullet")
    document.add_paragraph("pears", style="List Bullet")
    document.add_paragraph("first", style="List Number")
    document.add_paragraph("second", style="List Number")
    document.add_paragraph("After the table.")
    read_back = read("a.docx", saved(document))
    assert read_back.kind == "docx"
    assert read_back.text == (
        "# Report\n\n## Results\n\nBefore the table.\n\n"
        "| Name | Value |\n| --- | --- |\n| a\\|b | 1 2 |\n\n"
        "- apples\n- pears\n1. first\n2. second\n\nAfter the table."
    )


def test_the_title_comes_from_the_properties(read: Read) -> None:
    document = docx.Document()
    document.add_paragraph("x")
    document.core_properties.title = "A Title"
    assert read("a.docx", saved(document)).title == "A Title"
    document.core_properties.title = ""
    assert read("a.docx", saved(document)).title == "a.docx"


def test_merged_cells_keep_the_columns_in_place(read: Read) -> None:
    document = docx.Document()
    table = document.add_table(3, 3)
    for index, cell in enumerate(table._cells):
        cell.text = str(index)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    assert read("a.docx", saved(document)).text == (
        "| wide |  | 2 |\n| --- | --- | --- |\n| 3 | 4 | tall |\n| 6 | 7 |  |"
    )


def test_a_table_that_only_arranges_the_page_is_no_table(read: Read) -> None:
    document = docx.Document()
    document.add_table(1, 1).cell(0, 0).text = "framed"
    outer = document.add_table(1, 2)
    outer.cell(0, 0).text = "left"
    inner = outer.cell(0, 1).add_table(1, 2)
    inner.cell(0, 0).text = "in"
    inner.cell(0, 1).text = "ner"
    assert read("a.docx", saved(document)).text == "framed\n\nleft\n\n| in | ner |\n| --- | --- |"


def test_content_controls_links_and_insertions_are_read_and_deletions_are_not(read: Read) -> None:
    body = (
        f"<w:sdt><w:sdtPr><w:alias/></w:sdtPr><w:sdtContent>{TEXT('in a control')}</w:sdtContent></w:sdt>"
        "<w:p><w:r><w:t>see </w:t></w:r><w:hyperlink><w:r><w:t>the site</w:t></w:r></w:hyperlink>"
        "<w:ins><w:r><w:t>, new</w:t></w:r></w:ins><w:del><w:r><w:delText>, old</w:delText></w:r></w:del>"
        "<w:r><w:instrText>PAGEREF x</w:instrText></w:r><w:r><w:br/><w:t>next line</w:t></w:r></w:p>"
    )
    assert read("a.docx", samples.docx(body)).text == "in a control\n\nsee the site, new\nnext line"


MARK = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
INSTRUCTION = "<w:r><w:instrText>{}</w:instrText></w:r>".format
RUN = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>".format


def field(instruction: str, shown: str) -> str:
    """Return a field whose instruction comes in two pieces."""
    half = len(instruction) // 2
    instructions = INSTRUCTION(instruction[:half]) + INSTRUCTION(instruction[half:])
    return MARK("begin") + instructions + MARK("separate") + shown + MARK("end")


def test_links_that_are_fields_keep_where_they_lead(read: Read) -> None:
    address = 'HYPERLINK "https://octavo.test/a" \\o "tip"'
    place = 'HYPERLINK \\l "place"'
    inner = RUN("page ") + field("PAGEREF _Toc", RUN("7"))
    simple = f"<w:fldSimple w:instr=' HYPERLINK https://octavo.test/b '>{RUN('two')}</w:fldSimple>"
    body = (
        f"<w:p>{RUN('See ')}{field(address, inner)}{RUN(', ')}{simple}{RUN('; ')}"
        f"{field(place, RUN('below'))}{RUN('.')}</w:p>"
        f"<w:p>{MARK('end')}{MARK('begin')}{RUN('no end')}</w:p>"
    )
    assert read("a.docx", samples.docx(body)).text == (
        "See [page 7](https://octavo.test/a), [two](https://octavo.test/b); below.\n\nno end"
    )


def test_hidden_words_are_not_read(read: Read) -> None:
    hidden = "<w:r><w:rPr><w:vanish{}/></w:rPr><w:t>{}</w:t></w:r>".format
    shown = hidden(' w:val="0"', " three")
    body = f"<w:p>{RUN('one')}{hidden('', ' two')}{shown}</w:p>"
    assert read("a.docx", samples.docx(body)).text == "one three"


def test_how_a_word_is_read_comes_after_it(read: Read) -> None:
    ruby = f"<w:ruby><w:rubyPr/><w:rt>{RUN('とう')}</w:rt><w:rubyBase>{RUN('東')}</w:rubyBase></w:ruby>"
    assert read("a.docx", samples.docx(f"<w:p><w:r>{ruby}</w:r>{RUN('へ')}</w:p>")).text == "東(とう)へ"


def test_lines_of_code_keep_their_indentation(read: Read) -> None:
    body = f"<w:p>{RUN('def f():')}<w:r><w:br/></w:r>{RUN('    return 1')}</w:p>"
    assert read("a.docx", samples.docx(body)).text == "def f():\n    return 1"


def test_a_text_box_is_read_once(read: Read) -> None:
    box = f"<w:txbxContent>{TEXT('boxed')}</w:txbxContent>"
    body = (
        "<w:p><w:r><w:t>anchor</w:t></w:r><w:r><mc:AlternateContent>"
        f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    assert read("a.docx", samples.docx(body)).text == "anchor\n\nboxed"


def test_footnotes_are_numbered_as_the_text_cites_them(read: Read) -> None:
    body = (
        '<w:p><w:r><w:t>One</w:t></w:r><w:r><w:footnoteReference w:id="7"/></w:r>'
        '<w:r><w:t>, two</w:t></w:r><w:r><w:endnoteReference w:id="2"/></w:r></w:p>'
    )
    footnotes = f'<w:footnote w:type="separator" w:id="-1"/><w:footnote w:id="7">{TEXT("foot")}</w:footnote>'
    endnotes = f'<w:endnote w:id="2">{TEXT("end")}</w:endnote>'
    document = read("a.docx", samples.docx(body, footnotes=footnotes, endnotes=endnotes))
    assert document.text == "One[^1], two[^2]\n\n[^1]: foot\n[^2]: end"


def test_superscript_digits_stay_raised(read: Read) -> None:
    raised = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{}</w:t></w:r>'
    million = f"<w:r><w:t>10</w:t></w:r>{raised.format('-6')}"
    body = f"<w:p>{million}<w:r><w:t>, 1</w:t></w:r>{raised.format('st')}</w:p>"
    assert read("a.docx", samples.docx(body)).text == "10⁻⁶, 1st"


def test_a_heading_style_in_another_language_is_known_by_its_level(read: Read) -> None:
    styles = (
        '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Eigene"><w:name w:val="Eigene"/><w:basedOn w:val="berschrift2"/></w:style>'
        '<w:style w:styleId="Loop"><w:name w:val="Loop"/><w:basedOn w:val="Loop"/></w:style>'
    )
    paragraph = '<w:p><w:pPr><w:pStyle w:val="{}"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'.format
    body = paragraph("Eigene", "Kapitel") + paragraph("Loop", "Text")
    assert read("a.docx", samples.docx(body, styles=styles)).text == "## Kapitel\n\nText"


def test_a_document_without_text_is_refused(refusal: Refusal) -> None:
    assert "holds no text" in refusal("a.docx", samples.docx("<w:p/>"))


def test_a_damaged_document_is_named(refusal: Refusal) -> None:
    whole = saved(docx.Document())
    assert "the DOCX file seems to be damaged" in refusal("a.docx", whole[: len(whole) // 2])
    assert "the DOCX file seems to be damaged" in refusal("a.docx", samples.docx("<w:p>"))
    assert "the DOCX file seems to be damaged" in refusal("a.docx", bytes(range(256)) * 8)


def test_an_encrypted_document_is_named(refusal: Refusal) -> None:
    file = samples.OLE_START + bytes(2000) + "EncryptedPackage".encode("utf-16-le") + bytes(500)
    assert "protected by a password" in refusal("a.docx", file)


def with_declarations(file: bytes, declarations: str) -> bytes:
    start = f"<!DOCTYPE w:document [{declarations}]><w:document".encode()
    members = samples.members(file)
    members["word/document.xml"] = members["word/document.xml"].replace(b"<w:document", start, 1)
    return samples.zipped(members)


def test_an_entity_is_not_expanded_and_no_file_is_read_for_it(read: Read, tmp_path: Path) -> None:
    (tmp_path / "private.txt").write_text("private")
    file = samples.docx(f"{TEXT('kept &own; &other;')}<w:p>&own;</w:p>&own;")
    entities = f'<!ENTITY own "mine"><!ENTITY other SYSTEM "{(tmp_path / "private.txt").as_uri()}">'
    text = read("a.docx", with_declarations(file, entities)).text
    assert text.startswith("kept")
    assert "mine" not in text
    assert "private" not in text


def test_an_entity_bomb_is_refused(refusal: Refusal) -> None:
    lines = ['<!ENTITY a0 "lol">', *(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))]
    assert "damaged" in refusal("a.docx", with_declarations(samples.docx(TEXT("&a11;")), "".join(lines)))


def test_links_keep_where_they_lead(read: Read) -> None:
    body = (
        '<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink r:id="l1">'
        "<w:r><w:t>the </w:t></w:r><w:r><w:t>manual</w:t></w:r></w:hyperlink>"
        '<w:r><w:t xml:space="preserve"> and </w:t></w:r>'
        '<w:hyperlink w:anchor="up"><w:r><w:t>above</w:t></w:r></w:hyperlink></w:p>'
    )
    document = read("a.docx", samples.docx(body, links={"l1": "https://octavo.test/manual"}))
    assert document.text == "See [the manual](https://octavo.test/manual) and above"


PAGES = (
    "<w:p><w:r><w:t>first</w:t></w:r></w:p>"
    "<w:p><w:r><w:br w:type='page'/></w:r></w:p>"
    "<w:p><w:r><w:lastRenderedPageBreak/><w:t>second</w:t></w:r></w:p>"
    "<w:p><w:r><w:t>goes </w:t><w:lastRenderedPageBreak/><w:t>on</w:t></w:r></w:p>"
    "<w:p><w:pPr><w:outlineLvl w:val='0'/></w:pPr><w:r><w:lastRenderedPageBreak/></w:r></w:p>"
    "<w:p><w:r><w:t>end</w:t></w:r></w:p>"
)


def test_pages_begin_where_the_writing_program_had_laid_them_out(read: Read) -> None:
    document = read("a.docx", samples.docx(PAGES, num_pages=4))
    assert document.text == "first\n\nsecond\n\ngoes on\n\nend"
    assert document.num_pages == 4
    assert [document.text[start:][:4] for start in document.page_starts] == ["firs", "seco", "on\n\n", "end"]


def test_pages_that_the_writing_program_counts_otherwise_are_left_out(read: Read) -> None:
    document = read("a.docx", samples.docx(PAGES, num_pages=9))
    assert (document.text, document.num_pages) == ("first\n\nsecond\n\ngoes on\n\nend", None)
    assert document.page_starts == ()
