"""Power UI's test cases, in and out."""
