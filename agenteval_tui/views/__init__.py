"""What is shown of each subject, once for all: the terminal, Markdown and the screens render the same views."""
