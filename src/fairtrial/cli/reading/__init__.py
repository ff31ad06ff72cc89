"""Commands that read what is there: records, tables, publications."""
