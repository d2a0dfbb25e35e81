"""The context ledger: what the model reads of a conversation, and what stands for the rest.

What is stored and what follows from it:
    records: marks and summaries by the keys of messages and documents, and a change of them.
    standing: which turns and documents of a path are read, summarized, or left out.
    context: `ConversationContext`, a path with all that follows from its rows; begin here.
    ways: by which way its documents are read, and what was read of them.
    written_context: a context in the words that a model reads.
    actions: pin, drop, restore, and choose how a document is read, as changes.
    undo: which of them can still be taken back.

Trims:
    trimming: the policy: which turns go first, and the smallest trim that is enough.
    run: turns in a row that one summary is to stand for, and where their words are.
    planning: when a trim is due, with the numbers of the loaded model.
    asking: the refusal of what is due, where the user is to choose.
    preparing: the trim that the next question will need.
    keeper: carries out what is planned and stores it.
    positions: when a conversation is to be read again for its positions.

One summary:
    summary_request, summary_prompts: what is to be summarized, and how a model is asked.
    summarizer: has the model write it, or an extract stand in.
    summary_check: whether what the model wrote is one.
    facts: the numbers, dates and names of a text, by which summaries are compared.
    extract, sentences: the text's own sentences, chosen by rules.
    progress: how far it is.

What is shown:
    entries, report: the rows of the Context panel.
    left_out: the lines between the messages of a chat.
"""
