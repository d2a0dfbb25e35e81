"""PDF as Markdown, as far as the page shows it: reading order, headings, lists, tables, notes and links."""
