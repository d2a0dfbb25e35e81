from __future__ import annotations

import pytest

from tests.app.documents.conftest import Read, Refusal


def test_headings_paragraphs_and_lists(read: Read) -> None:
    page = """<!DOCTYPE html><html><head><title> The  page </title><style>p {color: red}</style></head><body>
    <h1>Main <em>heading</em></h1><p>One
       <b>paragraph</b> with a <a href="https://example.org">link</a>.<br>Next line.</p>
    <script>alert(1)</script>
    <ul><li>apple<li><p>pear</p><ol start=3><li>three</li><li>four</li></ol></ul>
    <h3>Sub</h3>loose text<blockquote>quoted<p>twice</p></blockquote>
    <noscript>no</noscript><p hidden>hidden</p><svg><text>drawn</text></svg>after</body></html>"""
    document = read("a.html", page)
    assert document.title == "The page"
    assert document.kind == "html"
    assert document.text == (
        "# Main heading\n\nOne paragraph with a [link](https://example.org).\nNext line.\n\n"
        "- apple\n- pear\n  3. three\n  4. four\n\n"
        "### Sub\n\nloose text\n\n> quoted\n\n> twice\n\nafter"
    )


def test_a_table_becomes_a_table(read: Read) -> None:
    page = """<html><body><table><caption>Fruit</caption><thead><tr><th>Name<th>Price</thead>
    <tr><td rowspan=2>apple<td>1 | 2</tr><tr><td><p>3</p><p>4</p></tr>
    <tr><td colspan=2>none</table></html>"""
    assert read("a.html", page).text == (
        "Fruit\n\n| Name | Price |\n| --- | --- |\n| apple | 1 \\| 2 |\n|  | 3 4 |\n| none |  |"
    )


def test_a_table_that_arranges_the_page_becomes_paragraphs(read: Read) -> None:
    page = "<html><table><tr><td>menu<td><table><tr><th>a<th>b<tr><td>1<td>2</table></table></html>"
    assert read("a.html", page).text == "menu\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_preformatted_text_keeps_its_lines(read: Read) -> None:
    page = "<html><p>x</p><pre>\nfor i in y:\n    print(i)\n</pre><p>a <code>b</code></p></html>"
    assert read("a.html", page).text == "x\n\n```\nfor i in y:\n    print(i)\n```\n\na b"


def test_superscripts_and_entities(read: Read) -> None:
    page = "<html><p>10<sup>6</sup> &lt; 1<sup>st</sup> caf&eacute; &amp;lt; so&shy;ft</p></html>"
    assert read("a.html", page).text == "10⁶ < 1st café &lt; soft"


@pytest.mark.parametrize(
    ("page", "encoding"),
    [
        ('<html><meta charset="windows-1251"><p>Привет</p></html>'.encode("cp1251"), "windows-1251"),
        ('<html><meta content="text/html; charset=gb2312"><p>你好</p></html>'.encode("gb2312"), "gb18030"),
        (
            '<?xml version="1.0" encoding="iso-8859-2"?><html><p>łódź</p></html>'.encode("iso-8859-2"),
            "iso-8859-2",
        ),
        ('<html><meta charset="utf-16"><p>größer</p></html>'.encode(), "utf-8"),
        ('<html><meta charset="nonsense"><p>größer</p></html>'.encode(), "utf-8"),
        ('<html><meta charset="koi8-r"><p>größer</p></html>'.encode("utf-16"), "utf-16-le"),
    ],
)
def test_the_declared_encoding_is_used_when_it_can_be_right(read: Read, page: bytes, encoding: str) -> None:
    document = read("a.html", page)
    assert document.text in ("Привет", "你好", "łódź", "größer")
    assert document.encoding == encoding
    assert not document.encoding_guessed


def test_the_users_choice_overrules_the_declaration(read: Read) -> None:
    page = '<html><meta charset="windows-1252"><p>Привет</p></html>'.encode("cp1251")
    assert read("a.html", page, encoding="windows-1251").text == "Привет"


def test_an_embedded_picture_does_not_hide_what_follows(read: Read) -> None:
    picture = "A" * 11_000_000
    assert (
        read("a.html", f'<html><p>before</p><img src="data:{picture}"><p>after</p>').text == "before\n\nafter"
    )


def test_nesting_beyond_what_the_parser_keeps_is_refused_and_not_cut(read: Read, refusal: Refusal) -> None:
    assert read("a.html", f"<html>{'<div>' * 1000}deep").text == "deep"
    assert "nested too deeply" in refusal("a.html", f"<html>{'<div>' * 5000}deep")


def test_a_page_without_text_is_refused(refusal: Refusal) -> None:
    assert "holds no text" in refusal("a.html", "<html><script>x()</script></html>")
    assert "holds no text" in refusal("a.html", "<!-- nothing -->")


def test_only_links_out_of_the_page_keep_where_they_lead(read: Read) -> None:
    page = """<p>A <a href="https://a.test/x_(y)">word or <b>two</b></a>, <a href="/b.html">a page</a>,
      <a href="#top">up</a>, <a href="javascript:alert(1)">run</a>, <a href="mailto:a@b.test">write</a>,
      <a href="https://a.test/">https://a.test</a>.</p>"""
    assert read("a.html", page).text == (
        "A [word or two](https://a.test/x_%28y%29), a page, up, run, [write](mailto:a@b.test), https://a.test."
    )


def test_notes_are_those_of_markdown(read: Read) -> None:
    page = """<p>Owls hunt<sup id="r1"><a href="#n1">1</a></sup> by night<a class="noteref"
      href="#n2">[b]</a>, says <a href="#c">2</a>.</p><h2 id="c">Notes</h2>
      <ol><li id="n1"><a href="#r1">^</a> Most of them.</li></ol><p id="n2"><a href="#r2">b</a> Or at dusk.
      <a href="#r2">↩</a></p>"""
    assert read("a.html", page).text == (
        "Owls hunt[^1] by night[^b], says 2.\n\n## Notes\n\n[^1]: Most of them.\n\n[^b]: Or at dusk."
    )


def test_words_that_look_like_markup_stay_words(read: Read) -> None:
    assert (
        read("a.html", "<p># 1 of the charts</p><p>``` here</p>").text == "\\# 1 of the charts\n\n\\``` here"
    )


def test_how_a_word_is_read_is_set_apart_from_it(read: Read) -> None:
    page = "<p><ruby>東<rt>とう</rt></ruby>と<ruby>京<rp>（</rp><rt>きょう</rt><rp>）</rp></ruby></p>"
    assert read("a.html", page).text == "東(とう)と京(きょう)"


def test_signs_that_give_a_headings_address_are_not_read(read: Read) -> None:
    page = """<h2 id="a">Owls<a class="headerlink" href="#a">¶</a></h2>
      <dl><dt id="b">wing <a href="#b">#</a></dt>
      <dd>C <a href="#c">#</a></dd></dl>"""
    assert read("a.html", page).text == "## Owls\n\nwing\n\nC #"


def test_what_a_page_declares_of_entities_is_not_its_text(read: Read) -> None:
    declared = '<!DOCTYPE html [\n<!ENTITY a "aaa">\n<!ENTITY b "&a;&a;">\n]>'
    page = f"<?xml version='1.0'?>\n{declared}\n<html><body><p>Words [1]&gt; here</p></body></html>"
    assert read("a.html", page).text == "Words [1]> here"
    assert read("b.html", f"{'<!DOCTYPE html [' * 20_000}<p>x</p>").text
