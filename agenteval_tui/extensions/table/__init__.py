"""Tables of test cases as suites: .csv, .tsv, .xlsx, .parquet, .arrow, and lists of JSON objects."""
