"""How right answers are, measured on labelled data. The data is not part of the repository; what a page publishes is
made here."""
