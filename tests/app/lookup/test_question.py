from __future__ import annotations

import pytest

from app.lookup.question import is_about_whole


@pytest.mark.parametrize(
    "question",
    [
        "",
        "?!",
        "Summarize this",
        "summarise the attached document, please",
        "What is this document about?",
        "Please give me a summary in 5 bullet points, in German.",
        "Comment on this.",
        "tl;dr",
        "What are the main points?",
        "Proofread this text.",
        "Fasse das Dokument zusammen",
        "Fass mir das bitte in drei Sätzen zusammen.",
        "Was sind die wichtigsten Punkte?",
        "Worum geht es?",
        "Résume ce document",
        "De quoi parle ce texte ?",
        "Resume este documento",
        "¿De qué trata?",
        "Riassumi il testo",
        "Di cosa parla?",
        "Resuma o documento",
        "Vat dit document samen",
        "Waar gaat dit over?",
        "Streść ten dokument",
        "Кратко изложи содержание документа",
        "О чём этот текст?",
        "总结这篇文章",
        "这篇文章讲了什么？",
        "請總結這份文件",
        "この文書を要約してください",
        "この論文の要点は何ですか",
        "이 문서를 요약해 줘",
        "لخص هذا المستند",
    ],
)
def test_what_asks_about_a_whole_document_is_not_to_be_looked_up(question: str) -> None:
    assert is_about_whole(question)


@pytest.mark.parametrize(
    "question",
    [
        "What is the warranty period?",
        "How long is the lease?",
        "Summarize chapter 3",
        "Summarize what it says about pumps.",
        "What does the document say about the night shift?",
        "What happened in 1998?",
        "Who is Martha Kent?",
        "When did the war end?",
        "Wie hoch ist die Kaution?",
        "Wann endet die Frist?",
        "Quelle est la durée de la garantie ?",
        "¿Cuánto cuesta la licencia?",
        "Chi ha firmato l'accordo?",
        "Qual é o prazo de entrega?",
        "Hoe hoog is de borg?",
        "Ile wynosi kaucja?",
        "Какой срок гарантии?",
        "保修期是多长时间？",
        "保証期間はどれくらいですか",
        "보증 기간은 얼마나 되나요?",
        "ما هي مدة الضمان؟",
    ],
)
def test_what_asks_about_something_in_a_document_is_to_be_looked_up(question: str) -> None:
    assert not is_about_whole(question)
